"""What a page of the dashboard consists of on the server."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.dashboard.feed.feed_source import DashboardContext, MakeSource

Answer = Callable[[DashboardContext, Mapping[str, Any]], Any]
"""Takes the parameters of the URL, or the JSON object of a POST; returns JSON.

It runs on a thread of its own and may wait for Kafka. A PenstockError becomes an answer that says what to do.
"""


@dataclass(frozen=True)
class Endpoint:
    """``/api/PAGE/NAME``. Without ``posts`` it is a GET; with ``writes`` it changes something: ``--allow-writes``."""

    name: str
    answer: Answer
    posts: bool = False
    writes: bool = False

    @property
    def method(self) -> str:
        return "POST" if self.posts or self.writes else "GET"


@dataclass(frozen=True)
class DashboardPage:
    """A page: ``#/name`` in the browser, drawn by ``static/pages/name.js`` with ``static/pages/name.css`` if any.

    ``title`` is its entry in the navigation; a page without one is reached by links only. ``under`` is the entry that
    is marked while it is open.
    """

    name: str
    title: str = ""
    under: str = ""
    icon: str = ""
    sources: Mapping[str, MakeSource] = field(default_factory=dict)
    endpoints: tuple[Endpoint, ...] = ()
    has_style: bool = False
