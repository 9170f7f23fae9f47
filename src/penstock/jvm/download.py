"""Downloads files from the Maven registry: several at once, resumed after an interruption, with checksums.

A lock has the size and the SHA-256 of each file. Without a lock, the registry announces the size with the response, and
has the SHA-1 in another file.
"""

import hashlib
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any, TypeVar

from penstock.errors import SetupError
from penstock.jvm.coordinates import Artifact
from penstock.jvm.download_errors import DamagedError
from penstock.jvm.manifest import Entry
from penstock.jvm.maven_connection import ATTEMPTS, MavenConnection, connect
from penstock.jvm.progress_callback import ProgressCallback

DOWNLOAD_SECONDS = 1800.0
_PARALLEL = 6
_CHUNK_BYTES = 1 << 17
_Created = TypeVar("_Created")
_HASHES = {"SHA-1": "sha1", "SHA-256": "sha256"}


@dataclass(frozen=True)
class Unlocked:
    """A file that no lock lists, by its path in the registry."""

    path: str


@dataclass(frozen=True)
class _Checksum:
    kind: str
    value: str


@dataclass(frozen=True)
class _Received:
    """The number of bytes that a worker has written; negative when it starts a file again."""

    count: int


@dataclass(frozen=True)
class _Finished:
    path: str


@dataclass(frozen=True)
class _TryingAgain:
    attempt: int
    reason: str


@dataclass(frozen=True)
class _Failed:
    error: Exception


_Report = _Received | _Finished | _TryingAgain | _Failed


class _Stop:
    """Stops the workers. After ``set`` none of them creates a file, so the caller can remove the folder."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._creating = threading.Lock()
        self.wait = self._event.wait
        self.is_set = self._event.is_set

    def set(self) -> None:
        with self._creating:
            self._event.set()

    def unless_set(self, create: Callable[[], _Created]) -> _Created:
        with self._creating:
            if self._event.is_set():
                raise _StoppedError
            return create()


class _StoppedError(BaseException):
    """The caller has stopped the download. Not an Exception, so that the code that retries does not catch it."""


def download(title: str, files: Sequence[Entry | Unlocked], target: Path, *, progress: ProgressCallback) -> None:
    """Download every file to its path below ``target``. The first final failure stops all of them.

    Workers are daemon threads and report through a queue, so that Ctrl+C ends the caller at once, even while a worker
    waits for a server that does not answer.
    """
    reports: queue.SimpleQueue[_Report] = queue.SimpleQueue()
    stop = _Stop()
    waiting: queue.SimpleQueue[Entry | Unlocked] = queue.SimpleQueue()
    for file in sorted(files, key=_size, reverse=True):  # largest first: they take the longest
        waiting.put(file)
    worker = _Worker(title, connect(), target, waiting, reports, stop)
    for _ in range(min(_PARALLEL, len(files))):
        threading.Thread(target=worker.work, name="penstock-download", daemon=True).start()
    try:
        _follow(title, files, reports, progress)
    finally:
        stop.set()


def _size(file: Entry | Unlocked) -> int:
    return file.size if isinstance(file, Entry) else 0


def _follow(
    title: str, files: Sequence[Entry | Unlocked], reports: "queue.SimpleQueue[_Report]", progress: ProgressCallback
) -> None:
    deadline = time.monotonic() + DOWNLOAD_SECONDS
    left, received, size = {file.path for file in files}, 0, sum(map(_size, files))
    attempt = 1

    def show_progress() -> None:
        if all(isinstance(file, Entry) for file in files):
            progress(f"Fetching {title}", done=received, total=size, unit="bytes")
        else:  # the total size is known only when the last file has begun
            progress(f"Fetching {title}", done=len(files) - len(left), total=len(files), unit="jars")

    show_progress()
    while left:
        try:
            report = reports.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise SetupError(
                f"Cannot fetch {title}: the download took longer than {DOWNLOAD_SECONDS / 60:.0f} minutes.",
                hint="Use a faster network or a mirror (PENSTOCK_MAVEN_URL), then run the command again.",
            ) from None
        match report:
            case _Failed(error):
                raise error
            case _Finished(path):
                left.remove(path)
                show_progress()
            case _Received(count):
                received += count
                show_progress()
            case _TryingAgain(number, reason) if number > attempt:  # reported once, not by every worker
                attempt = number
                progress(f"Trying again ({attempt} of {ATTEMPTS}): {reason}")


@dataclass(frozen=True)
class _Worker:
    """The work of every download thread. It has no state, so all threads share one instance."""

    title: str
    connection: MavenConnection
    target: Path
    waiting: "queue.SimpleQueue[Entry | Unlocked]"
    reports: "queue.SimpleQueue[_Report]"
    stop: "_Stop"

    def work(self) -> None:
        while not self.stop.is_set():
            try:
                file = self.waiting.get_nowait()
            except queue.Empty:
                return
            try:
                self._fetch(file)
            except _StoppedError:
                return
            except Exception as error:  # noqa: BLE001 - the caller raises it
                self.reports.put(_Failed(error))
                return

    def _fetch(self, file: Entry | Unlocked) -> None:
        finished_file = self.target / file.path
        self.stop.unless_set(lambda: finished_file.parent.mkdir(parents=True, exist_ok=True))
        part = finished_file.with_name(f"{finished_file.name}.part")
        self.connection.persist(
            lambda: self._receive(file, part),
            title=self.title,
            what=str(Artifact.of_path(file.path)),
            on_retry=lambda attempt, reason: self.reports.put(_TryingAgain(attempt, reason)),
            pause=self.stop.wait,
        )
        self.stop.unless_set(lambda: part.rename(finished_file))
        self.reports.put(_Finished(file.path))

    def _receive(self, file: Entry | Unlocked, part: Path) -> None:
        """Fetch the file, or the rest of it."""
        checksum = self._checksum(file)
        there = part.stat().st_size if part.exists() else 0
        with self.connection.open(file.path, start=there) as response:
            if response.status != HTTPStatus.PARTIAL_CONTENT and there:
                self.reports.put(_Received(-there))
                there = 0
            size = file.size if isinstance(file, Entry) else _announced(response, there)
            with self.stop.unless_set(lambda: part.open("ab" if there else "wb")) as target:
                self._copy(response, target, limit=None if size is None else size - there)
        self._check(part, size, checksum)

    def _checksum(self, file: Entry | Unlocked) -> _Checksum | None:
        if isinstance(file, Entry):
            return _Checksum("SHA-256", file.sha256)
        value = self.connection.sha1(file.path)
        return _Checksum("SHA-1", value) if value else None

    def _copy(self, response: IO[bytes], target: IO[bytes], *, limit: int | None) -> None:
        while chunk := response.read(_CHUNK_BYTES if limit is None else min(_CHUNK_BYTES, limit + 1)):
            if self.stop.is_set():
                raise _StoppedError
            target.write(chunk)
            self.reports.put(_Received(len(chunk)))
            if limit is not None:
                limit -= len(chunk)
                if limit < 0:  # longer than expected: this is another file
                    break

    def _check(self, part: Path, size: int | None, checksum: _Checksum | None) -> None:
        there = part.stat().st_size
        if size is not None and there < size:  # keep the part: the next attempt downloads the rest
            raise DamagedError(f"{there:,} of {size:,} bytes")
        if checksum is None:
            return
        with part.open("rb") as file:
            digest = hashlib.file_digest(file, _HASHES[checksum.kind]).hexdigest()
        if digest != checksum.value:
            part.unlink()
            self.reports.put(_Received(-there))
            raise DamagedError(f"its {checksum.kind} is {digest}, not {checksum.value}")


def _announced(response: Any, there: int) -> int | None:
    """Return the size of the whole file, or None if the response has no Content-Length."""
    length = response.headers.get("Content-Length")
    return int(length) + there if length else None
