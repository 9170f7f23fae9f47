"""The ids that handlers with ``dedupe=`` have seen, in an SQLite file of this machine."""

import sqlite3
import threading
import weakref
from contextlib import suppress
from pathlib import Path

from penstock.app.attempts.deduplication import IdInProgress

MOST_IDS = 1_000_000
_CLEAN_EVERY = 10_000
_CLEAN_AT_ONCE = 50_000
_BUSY_SECONDS = 10.0

_TABLE = (
    "CREATE TABLE IF NOT EXISTS seen (name TEXT NOT NULL, id TEXT NOT NULL, origin TEXT NOT NULL, until REAL NOT NULL, "
    "PRIMARY KEY (name, id)) WITHOUT ROWID"
)
_INDEX = "CREATE INDEX IF NOT EXISTS seen_until ON seen (name, until)"
_READ = "SELECT origin FROM seen WHERE name = ? AND id = ? AND until > ? AND origin <> ?"
_WRITE = "INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?)"
_EXPIRE = "DELETE FROM seen WHERE name = ? AND id IN (SELECT id FROM seen WHERE name = ? AND until <= ? LIMIT ?)"
_COUNT = "SELECT COUNT(*) FROM seen WHERE name = ?"
_SHRINK = "DELETE FROM seen WHERE name = ? AND id IN (SELECT id FROM seen WHERE name = ? ORDER BY until LIMIT ?)"


class LocalSeenIds:
    """The ids of one handler, in the file ``path`` (``":memory:"`` for tests), at most ``most`` of them.

    Processes of this machine share the file. Only those records exclude each other that are in progress in one process.
    """

    def __init__(self, path: Path | str, name: str, *, most: int = MOST_IDS) -> None:
        self._name, self._most = name, most
        self._lock = threading.Lock()
        self._in_progress: dict[str, str] = {}  # origins by id; guarded by the lock, like the connection
        self._written = 0
        self._now = 0.0
        if isinstance(path, Path):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            # One connection for all threads: the lock makes them take turns. Each statement is a transaction.
            self._connection = sqlite3.connect(
                path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            weakref.finalize(self, self._connection.close)  # for ids that nobody closes
            for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", _TABLE, _INDEX):
                self._connection.execute(statement)
        except sqlite3.Error as error:
            raise OSError(f"{path}: {error}") from error

    def begin(self, record_id: str, origin: str, now: float) -> str | None:
        with self._lock:
            self._now = now
            if self._in_progress.get(record_id, origin) != origin:
                raise IdInProgress
            try:
                row = self._connection.execute(_READ, (self._name, record_id, now, origin)).fetchone()
            except sqlite3.Error as error:
                raise OSError(str(error)) from error
            if row is None:
                self._in_progress[record_id] = origin
                return None
            found: str = row[0]
            return found

    def end(self, record_id: str, origin: str, until: float | None) -> None:
        with self._lock:
            if self._in_progress.get(record_id) == origin:
                del self._in_progress[record_id]
            # If the id cannot be written, a duplicate is handled again: the record itself is finished all the same.
            with suppress(sqlite3.Error):
                if until is not None:
                    self._connection.execute(_WRITE, (self._name, record_id, origin, until))
                    self._clean()

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _clean(self) -> None:
        """Now and then, delete some ids that have expired, and the oldest if there are too many."""
        self._written += 1
        if self._written % min(_CLEAN_EVERY, self._most):
            return
        execute, name = self._connection.execute, self._name
        execute(_EXPIRE, (name, name, self._now, _CLEAN_AT_ONCE))
        (count,) = execute(_COUNT, (name,)).fetchone()
        if count > self._most:
            execute(_SHRINK, (name, name, count - self._most))


_opened: dict[tuple[str, str], LocalSeenIds] = {}
_opening = threading.Lock()


def open_seen_ids(path: Path, name: str) -> LocalSeenIds:
    """Return the ids of a handler: the same object for all its members in this process."""
    with _opening:
        key = str(path), name
        if key not in _opened:
            _opened[key] = LocalSeenIds(path, name)
        return _opened[key]
