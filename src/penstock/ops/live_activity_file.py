"""The file in which a running app says what it does now, for the dashboard: only while somebody looks.

A dashboard touches the file ``PID-BORN.watched``. While it is fresh, the run writes ``PID-BORN.live`` about once a
second.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec
import psutil

from penstock.core.reports.events import Event
from penstock.core.reports.run_activity import RunActivity
from penstock.core.settings import redacted_values
from penstock.jvm.private_files import open_private
from penstock.paths import live_activity_path, live_watch_path

_WRITE_SECONDS = 1.0
# So long after the last look, the file is still written.
_WATCHED_SECONDS = 5.0
_JOIN_SECONDS = 5.0


class Activities(Protocol):
    """What the picture needs of the members of a run (``HealthBoard``)."""

    def activities(self) -> Sequence[Any]: ...


class LivePicture:
    """Collects the events of a run, and puts them together with what its members do now. Any thread may call it."""

    name: Literal["picture"] = "picture"

    def __init__(self, members: Activities) -> None:
        self._members = members
        self._activity = RunActivity()
        self._lock = threading.Lock()

    def on_event(self, event: Event) -> None:
        with self._lock:
            self._activity.note(event, now=time.time())

    def as_json(self) -> dict[str, Any]:
        """Return the picture without secrets. It waits for the members."""
        members = self._members.activities()
        with self._lock:
            handlers = self._activity.as_json()
        found: dict[str, Any] = redacted_values(
            msgspec.to_builtins({"at": round(time.time(), 3), "handlers": handlers, "members": members}, enc_hook=str)
        )
        return found


@contextmanager
def live_activity_file(picture: LivePicture) -> Iterator[None]:
    """For the block, write the file of this process while a dashboard looks. If that fails, the run goes on."""
    process, ended = psutil.Process(), threading.Event()
    born = process.create_time()
    path, watch = live_activity_path(process.pid, born), live_watch_path(process.pid, born)

    def write() -> None:
        while not ended.wait(_WRITE_SECONDS):
            if _is_fresh(watch):
                with suppress(OSError):
                    _replace(path, msgspec.json.encode(picture.as_json()))

    thread = threading.Thread(target=write, name="live activity", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(_JOIN_SECONDS)
        for each in (path, watch):
            with suppress(OSError):
                each.unlink(missing_ok=True)


def _is_fresh(watch: Path) -> bool:
    try:
        return time.time() - watch.stat().st_mtime < _WATCHED_SECONDS
    except OSError:
        return False


def _replace(path: Path, content: bytes) -> None:
    fresh = path.with_suffix(".new-live")
    with open_private(fresh, "wb") as file:
        file.write(content)
    fresh.replace(path)


def look_at(pid: int, born: float) -> dict[str, Any] | None:
    """Return what a run of this machine does now; None until it has written it. This keeps it writing for a while."""
    with suppress(OSError):
        with open_private(live_watch_path(pid, born), "ab"):
            pass
        live_watch_path(pid, born).touch()
    with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
        found = msgspec.json.decode(live_activity_path(pid, born).read_bytes())
        if isinstance(found, dict) and isinstance(found.get("handlers"), list):
            return found
    return None
