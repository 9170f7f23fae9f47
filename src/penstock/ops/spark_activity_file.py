"""The file in which a run on Spark says what its handlers and pipelines do, for the dashboard."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import msgspec
import psutil

from penstock.core.reports.events import Event
from penstock.core.reports.spark_activity import SparkActivity, SparkSessionFacts
from penstock.core.settings import redacted_values
from penstock.jvm.private_files import open_private
from penstock.paths import spark_activity_path

# At most this often: while records flow, something changes all the time.
_WRITE_SECONDS = 1.0
_JOIN_SECONDS = 5.0


class SparkPicture:
    """Collects the events of a run on Spark. Any thread may call it."""

    name: Literal["spark"] = "spark"

    def __init__(self, facts: Callable[[], SparkSessionFacts | None]) -> None:
        self._ask_facts = facts
        self._facts: SparkSessionFacts | None = None
        self._activity = SparkActivity()
        self._lock = threading.Lock()

    def on_event(self, event: Event) -> bool:
        """Take an event in; return whether something changed."""
        with self._lock:
            return self._activity.note(event, now=time.time())

    def as_json(self) -> dict[str, Any]:
        """Return the picture without secrets. It may wait for Spark."""
        if self._facts is None:
            self._facts = self._ask_facts()
        with self._lock:
            works = self._activity.as_json()
        facts = None if self._facts is None else asdict(self._facts)
        content = {"at": round(time.time(), 3), "session": facts, "works": works}
        found: dict[str, Any] = redacted_values(msgspec.to_builtins(content, enc_hook=str))
        return found


class _Writer:
    """Writes the file on a thread of its own. Listeners are called on threads of the engine, which must not wait."""

    def __init__(self, path: Path, picture: SparkPicture) -> None:
        self._path = path
        self._picture = picture
        self._changed = threading.Event()
        self._ended = threading.Event()
        self.thread = threading.Thread(target=self._run, name="spark activity", daemon=True)

    def on_event(self, event: Event) -> None:
        if self._picture.on_event(event):
            self._changed.set()

    def end(self) -> None:
        self._ended.set()
        self._changed.set()

    def _run(self) -> None:
        while not self._ended.is_set():
            self._changed.wait()
            self._changed.clear()
            with suppress(OSError):
                self._write()
            self._ended.wait(_WRITE_SECONDS)
        with suppress(OSError):
            self._write()

    def _write(self) -> None:
        content = self._picture.as_json()
        if content["works"]:
            fresh = self._path.with_suffix(".new")
            with open_private(fresh, "wb") as file:
                file.write(msgspec.json.encode(content))
            fresh.replace(self._path)


@contextmanager
def spark_activity_file(picture: SparkPicture) -> Iterator[Callable[[Event], None]]:
    """Keep the file of this process up to date for the block. Yields a listener.

    A file that cannot be written does not stop the run.
    """
    process = psutil.Process()
    writer = _Writer(spark_activity_path(process.pid, process.create_time()), picture)
    writer.thread.start()
    try:
        yield writer.on_event
    finally:
        writer.end()
        writer.thread.join(_JOIN_SECONDS)


def read_spark_activity(pid: int, born: float) -> dict[str, Any] | None:
    """Return what the file of a run contains; None if it does not exist or cannot be read."""
    with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
        found = msgspec.json.decode(spark_activity_path(pid, born).read_bytes())
        if isinstance(found, dict) and isinstance(found.get("works"), list):
            return found
    return None
