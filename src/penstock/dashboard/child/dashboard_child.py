"""The parent's side of the child process: sources and endpoints as if they were read here."""

import threading
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import Any

from penstock.dashboard.child.page_service import Brokers, Note, PageService, RowsPart
from penstock.dashboard.feed.feed_source import DashboardContext, FeedSource, MakeSource, Publish, Rows
from penstock.dashboard.pages import PAGES
from penstock.errors import PenstockError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.child_process import ChildProcess
from penstock.ops.record_view import Decoding

_NAME = "The process that reads for this page"


class DashboardChild:
    """Reads in a child process, which starts with the first read, and again after it died. Any thread may use it.

    ``connect`` and ``make_decoding`` are called there, so they are pickled. ``note`` is called here.
    """

    def __init__(
        self,
        connect: Callable[[], Cluster],
        *,
        note: Callable[[str], None],
        make_decoding: Callable[[], Decoding] | None = None,
        formats: tuple[str, ...] = (),
    ) -> None:
        self._note = note
        self._numbers = count()
        self._beginning = threading.Lock()
        self._brokers: str | None = None
        make = partial(PageService, connect, make_decoding, formats)
        self._process = ChildProcess(make, name=_NAME, hear=self._hear)

    @property
    def brokers(self) -> str | None:
        """The address of the cluster to which the child is connected; None without a connection."""
        return self._brokers

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def begin(self) -> None:
        """Let the child connect, without waiting for it."""
        if self._brokers is None and self._beginning.acquire(blocking=False):
            threading.Thread(target=self._begin, name="connect", daemon=True).start()

    def makers(self) -> dict[str, MakeSource]:
        """Return what makes the sources of all pages."""
        return {name: partial(self._source, name, make) for page in PAGES for name, make in page.sources.items()}

    def answer(self, page: str, endpoint: str, given: Mapping[str, Any]) -> Any:
        return self._process.call("answer", page, endpoint, dict(given))

    def close(self) -> None:
        self._process.close()

    def _begin(self) -> None:
        try:
            self._process.call("begin")
        except (PenstockError, OSError):
            pass  # who reads next gets the error
        finally:
            self._beginning.release()

    def _source(self, name: str, make: MakeSource, context: DashboardContext, given: Mapping[str, str]) -> FeedSource:
        # Made here too, only to raise now if a parameter is missing or wrong.
        return ChildSource(self._process, next(self._numbers), name, given, every=make(context, given).every)

    def _hear(self, said: object) -> None:
        match said:
            case Brokers(address):
                self._brokers = address
            case Note(line):
                self._note(line)


class ChildSource:
    """A source that the child reads. It keeps the rows here: after the death of the child, the page still has them."""

    def __init__(
        self, process: ChildProcess, number: int, topic: str, given: Mapping[str, str], *, every: float
    ) -> None:
        self.every = every
        self._process = process
        self._number = number
        self._topic = topic
        self._given = dict(given)
        self._rows: Rows = {}

    def read(self, publish: Publish, visible: frozenset[str]) -> float:
        def take(part: RowsPart) -> None:
            kept = {} if part.is_all else {key: row for key, row in self._rows.items() if key not in part.gone}
            self._rows = kept | part.changed
            publish(self._rows)

        used: float = self._process.call("read", self._number, self._topic, self._given, visible, part=take)
        return used

    def close(self) -> None:
        self._process.tell("close_source", self._number)
