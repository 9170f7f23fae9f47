"""One topic of the feed: its source, its thread, and its last rows."""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.core.settings import redacted_values
from penstock.dashboard.feed.feed_source import FeedSource, Rows
from penstock.dashboard.feed.row_changes import row_changes
from penstock.errors import PenstockError

# A viewer that is further behind gets a snapshot.
_KEPT_MESSAGES = 32
# The pause after a read is at least so many times the read, which may wait for brokers that are slow, but not longer
# than this: after an outage, whose last read waits for its requests, a page would show old figures for minutes.
_PAUSE_PER_READ = 4.0
_LONGEST_PAUSE_FOR_BROKERS = 10.0
# and so many times its processor time: a source may use about 2.5 % of a core.
_PAUSE_PER_PROCESSOR_TIME = 40.0
_TRY_AGAIN_SECONDS = 2.0


@dataclass(frozen=True)
class ChannelState:
    """The rows of a channel now. ``reads`` counts the reads that have ended, also those that failed."""

    rows: Rows
    trouble: PenstockError | None
    reads: int


class FeedChannel:
    """Reads a source on a thread and keeps the rows. Viewers read its messages from the event loop's thread.

    ``_lock`` guards everything that both sides use: the rows, the messages, the trouble and the visible keys.
    """

    def __init__(
        self, topic: str, source: FeedSource, *, changed: Callable[[], None], failed: Callable[..., None]
    ) -> None:
        self.topic = topic
        self._source = source
        self._changed = changed
        self._failed = failed
        self._lock = threading.Lock()
        self._rows: Rows = {}
        self._trouble: PenstockError | None = None
        self._reads = 0
        self._has_read = False
        self._version = 0
        self._messages: deque[bytes] = deque(maxlen=_KEPT_MESSAGES)
        self._visible: frozenset[str] = frozenset()
        self._wake = threading.Event()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name=f"feed {topic[:40]}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end. It does not wait for it: a read may wait for a broker."""
        self._ended = True
        self._wake.set()

    def look_at(self, visible: frozenset[str]) -> None:
        """Set which rows viewers see now, and read soon if there are new ones."""
        with self._lock:
            fresh = visible - self._visible
            self._visible = visible
        if fresh:
            self._wake.set()

    def messages_after(self, version: int | None) -> tuple[list[bytes], int]:
        """Return the messages for a viewer that has seen this version (None: nothing), and the current version."""
        with self._lock:
            missed = None if version is None else self._version - version
            if missed is not None and missed <= len(self._messages):
                return list(self._messages)[len(self._messages) - missed :], self._version
            if not self._has_read and self._trouble is None:
                return [], 0
            trouble = _told(self._trouble)
            snapshot = {"topic": self.topic, "rows": self._rows, "trouble": trouble, "complete": self._has_read}
            return [_encoded(snapshot)], self._version

    def state(self) -> ChannelState:
        """Return the rows as they are now, for a viewer in this process."""
        with self._lock:
            return ChannelState(self._rows, self._trouble, self._reads)

    def _run(self) -> None:
        try:
            while not self._ended:
                began = time.monotonic()
                self._wake.clear()
                self._wake.wait(self._read_once(began))
        finally:
            self._source.close()

    def _read_once(self, began: float) -> float:
        """Read the source. Return how many seconds to wait until the next read."""
        used = time.thread_time()
        try:
            elsewhere = self._source.read(self._publish, self._visible)
        except PenstockError as error:
            self._failed(error)
            # Not the error itself: its traceback refers to the admin client, which would live on. librdkafka aborts the
            # process if a broker returns to a client whose requests to coordinators have timed out.
            self._ended_read(type(error)(error.problem, hint=error.hint))
            return _TRY_AGAIN_SECONDS
        except Exception as error:  # noqa: BLE001 - a bug in one source must not silence the page
            bug = f"This page has a bug: {type(error).__name__}: {error}"
            self._ended_read(PenstockError(bug, hint="Please report it."))
            return _TRY_AGAIN_SECONDS * 5
        self._ended_read(None)
        used_here = time.thread_time() - used
        return pause_after(self._source.every, time.monotonic() - began, used_here + (elsewhere or 0.0))

    def _publish(self, rows: Rows) -> None:
        with self._lock:
            changes = row_changes(self._rows, rows)
            first, self._rows, self._has_read = not self._has_read, rows, True
            if first:
                self._version += _KEPT_MESSAGES + 1  # every viewer gets a snapshot
                self._messages.clear()
            elif changes:
                self._add({"topic": self.topic, "set": changes.fields, "gone": changes.gone})
            else:
                return
        self._changed()

    def _ended_read(self, trouble: PenstockError | None) -> None:
        with self._lock:
            self._reads += 1
            same, self._trouble = _told(trouble) == _told(self._trouble), trouble
            if same:
                return
            self._add({"topic": self.topic, "trouble": _told(trouble)})
        self._changed()

    def _add(self, message: dict[str, Any]) -> None:
        self._version += 1
        self._messages.append(_encoded(message))


def pause_after(every: float, took: float, processor_time: float) -> float:
    """Return how long to wait after a read, in seconds."""
    for_brokers = min(_PAUSE_PER_READ * took, _LONGEST_PAUSE_FOR_BROKERS)
    return max(every, for_brokers, _PAUSE_PER_PROCESSOR_TIME * processor_time)


def _told(trouble: PenstockError | None) -> dict[str, str] | None:
    return None if trouble is None else {"problem": trouble.problem, "hint": trouble.hint}


def _encoded(message: dict[str, Any]) -> bytes:
    return msgspec.json.encode(redacted_values(message), enc_hook=str)
