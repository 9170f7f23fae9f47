"""What tests of the dashboard get: a scene, the dashboard, and a tab of a browser that sees it."""

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import ConsoleMessage, Locator, Page, Request

from kafka_helpers import WAIT_SECONDS
from penstock.dashboard import DashboardChild


@dataclass(frozen=True)
class Scene:
    """A running app. It has written three dead letters: everything in them is hostile."""

    brokers: str
    topic: str
    group: str
    pid: int
    log: Path

    @property
    def dlq(self) -> str:
        return f"{self.topic}.dlq"


@dataclass(frozen=True)
class ServedTest:
    """The dashboard, and what it has logged."""

    url: str
    origin: str
    notes: list[str]
    child: DashboardChild


@dataclass
class Tab:
    """A tab of the signed-in browser. It notes what no page may do: errors, and requests to other places."""

    page: Page
    origin: str
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(WAIT_SECONDS * 1000)
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.faults.append(f"{error.name}: {error.message}"))
        self.page.on("request", self._asked)

    def open(self, place: str, **parameters: object) -> Page:
        """Go to a page of the dashboard. It does not load the document again if it is there already."""
        self.page.goto(f"{self.origin}/#/{place}" + (f"?{urlencode(parameters)}" if parameters else ""))
        return self.page

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.faults.append(f"the console says: {message.text}")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((f"{self.origin}/", "data:")):
            self.faults.append(f"a request to {request.url}")


def row_at(page: Page, rows: Locator, at: str) -> Locator:
    """The row of the record at ``0:1``. The cell must be equal: a time such as 20:15 contains the same characters."""
    return rows.filter(has=page.get_by_role("cell", name=at, exact=True))
