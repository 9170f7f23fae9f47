"""Lives in the child process: reads sources and answers endpoints.

It connects, so only this process knows the secrets of the settings: all that it sends to the parent is redacted here.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from penstock.core.settings import redacted, redacted_values
from penstock.dashboard.feed.cluster_connection import ClusterConnection
from penstock.dashboard.feed.feed_source import DashboardContext, FeedSource, Row, Rows
from penstock.dashboard.pages import PAGES
from penstock.errors import PenstockError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.child_process import Say
from penstock.ops.record_view import DecoderFor, Decoding


@dataclass(frozen=True)
class Brokers:
    """Said to the parent when the address of the connected cluster changes."""

    address: str | None


@dataclass(frozen=True)
class Note:
    """Said to the parent for each write."""

    line: str


@dataclass(frozen=True)
class RowsPart:
    """What a read has published: rows that are new or changed, and keys of rows that no longer exist."""

    changed: dict[str, Row]
    gone: list[str]
    is_all: bool
    """Whether these are all rows: it is the first part of a source in this process."""


@dataclass
class _OpenSource:
    source: FeedSource
    sent: Rows | None = None


class PageService:
    """Its methods are called on threads of the child process."""

    def __init__(
        self,
        connect: Callable[[], Cluster],
        make_decoding: Callable[[], Decoding] | None,
        formats: tuple[str, ...],
        say: Say,
    ) -> None:
        self._say = say
        self._lock = threading.Lock()
        self._open: dict[int, _OpenSource] = {}
        self._reading = 0
        self._brokers: str | None = None
        decoding = Decoding() if make_decoding is None else Decoding(formats, _LateDecoding(make_decoding))
        self._context = DashboardContext(
            ClusterConnection(connect),
            allow_writes=True,
            note=lambda line: say(Note(redacted(line))),
            decoding=decoding,
        )
        self._endpoints = {(page.name, each.name): each for page in PAGES for each in page.endpoints}
        self._makers = {name: make for page in PAGES for name, make in page.sources.items()}

    def begin(self) -> None:
        """Connect, so that the parent learns the address: pages without Kafka's data show it too."""
        self._context.connection.begin()
        self._say_brokers()

    def read(self, number: int, topic: str, given: Mapping[str, str], visible: frozenset[str], *, part: Say) -> float:
        """Read a source once; return the processor time that it took, in seconds. ``number`` is the parent's name.

        The threads of the Kafka client work too. So it is the time of the process, shared among the reads in progress.
        """
        began = time.process_time()
        with self._lock:
            self._reading += 1
            its = self._open.get(number)
            if its is None:
                its = self._open[number] = _OpenSource(self._makers[topic](self._context, given))
        try:
            its.source.read(partial(_publish, its, part), visible)
        except PenstockError as error:
            self._context.connection.failed(error)
            raise _redacted_error(error) from None
        finally:
            with self._lock:
                reading, self._reading = self._reading, self._reading - 1
            self._say_brokers()
        return (time.process_time() - began) / reading

    def close_source(self, number: int) -> None:
        with self._lock:
            its = self._open.pop(number, None)
        if its is not None:
            its.source.close()

    def answer(self, page: str, endpoint: str, given: Mapping[str, Any]) -> Any:
        """Answer an endpoint. The parent has checked whether this request may write."""
        try:
            return redacted_values(self._endpoints[page, endpoint].answer(self._context, given))
        except PenstockError as error:
            self._context.connection.failed(error)
            raise _redacted_error(error) from None

    def close(self) -> None:
        """The parent has ended: replays that run stop after their current batch, or with this process."""
        self._context.replays.stop_all()

    def _say_brokers(self) -> None:
        found = self._context.connection.brokers
        with self._lock:
            if found == self._brokers:
                return
            self._brokers = found
        self._say(Brokers(found))


def _publish(its: _OpenSource, part: Say, rows: Rows) -> None:
    sent = its.sent
    its.sent = rows
    if sent is None:
        part(RowsPart(redacted_values(rows), [], is_all=True))
        return
    changed = {key: row for key, row in rows.items() if (old := sent.get(key)) is not row and old != row}
    gone = [key for key in sent if key not in rows]
    if changed or gone:
        part(RowsPart(redacted_values(changed), gone, is_all=False))


def _redacted_error(error: PenstockError) -> PenstockError:
    return type(error)(redacted(error.problem), hint=redacted(error.hint))


class _LateDecoding:
    """Loads the app, if the dashboard decodes by one, only when somebody looks at records."""

    def __init__(self, make: Callable[[], Decoding]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: Decoding | None = None

    def __call__(self, name: str) -> DecoderFor:
        with self._lock:
            if self._made is None:
                self._made = self._make()
        return self._made.make(name)
