"""Downloading the files of a lock: several at once, continued after a break, each checked by size and SHA-256."""

import hashlib
import queue
import ssl
import threading
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import quote

from penstock._version import __version__
from penstock.errors import SetupError
from penstock.jvm.coordinates import Artifact
from penstock.jvm.failures import DamagedError, explain_download
from penstock.jvm.folders import DISK_ERRORS
from penstock.jvm.manifest import Entry
from penstock.jvm.progress import Progress
from penstock.jvm.registry import Registry, find_registry

DOWNLOAD_SECONDS = 1800.0
_PARALLEL = 6
_ATTEMPTS = 3
# Before the second attempt and before the third.
_PAUSE_SECONDS = (1.0, 4.0)
# For the connection, and for each read.
_SILENCE_SECONDS = 30.0
_CHUNK_BYTES = 1 << 17


@dataclass(frozen=True)
class _Received:
    """Bytes that a worker has written; fewer than none where it starts a file over."""

    count: int


@dataclass(frozen=True)
class _Finished:
    entry: Entry


@dataclass(frozen=True)
class _TryingAgain:
    attempt: int
    reason: str


@dataclass(frozen=True)
class _Failed:
    error: Exception


_Report = _Received | _Finished | _TryingAgain | _Failed


def download(title: str, files: Sequence[Entry], target: Path, *, progress: Progress) -> None:
    """Fetch every file into its place below ``target``; the first that fails for good ends them all.

    Workers are daemon threads and report through a queue, so that Ctrl+C ends the caller at once, even while a worker
    waits for a server that does not answer.
    """
    reports: queue.SimpleQueue[_Report] = queue.SimpleQueue()
    stop = threading.Event()
    waiting: queue.SimpleQueue[Entry] = queue.SimpleQueue()
    for entry in sorted(
        files, key=lambda each: -each.size
    ):  # the longest first: they decide when the last one is there
        waiting.put(entry)
    registry = find_registry()
    worker = _Worker(title, registry, target, waiting, reports, stop, _opener(registry))
    for _ in range(min(_PARALLEL, len(files))):
        threading.Thread(target=worker.work, name="penstock-download", daemon=True).start()
    try:
        _follow(title, files, reports, progress)
    finally:
        stop.set()


def _follow(title: str, files: Sequence[Entry], reports: "queue.SimpleQueue[_Report]", progress: Progress) -> None:
    deadline = time.monotonic() + DOWNLOAD_SECONDS
    left, done, total = {entry.path for entry in files}, 0, sum(entry.size for entry in files)
    attempt = 1
    progress(f"Fetching {title}", done=done, total=total, unit="bytes")
    while left:
        try:
            report = reports.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise SetupError(
                f"Cannot fetch {title}: the download did not end within {DOWNLOAD_SECONDS / 60:.0f} minutes.",
                hint="Use a faster network or a mirror (PENSTOCK_MAVEN_URL), then run the command again.",
            ) from None
        match report:
            case _Failed(error):
                raise error
            case _Finished(entry):
                left.remove(entry.path)
            case _Received(count):
                done += count
                progress(f"Fetching {title}", done=done, total=total, unit="bytes")
            case _TryingAgain(number, reason) if number > attempt:  # said once, not once for each worker
                attempt = number
                progress(f"Trying again ({attempt} of {_ATTEMPTS}): {reason}")


@dataclass(frozen=True)
class _Worker:
    """What every worker thread needs; it keeps no state of its own."""

    title: str
    registry: Registry
    target: Path
    waiting: "queue.SimpleQueue[Entry]"
    reports: "queue.SimpleQueue[_Report]"
    stop: threading.Event
    opener: urllib.request.OpenerDirector

    def work(self) -> None:
        while not self.stop.is_set():
            try:
                entry = self.waiting.get_nowait()
            except queue.Empty:
                return
            try:
                self._fetch(entry)
            except Exception as error:  # noqa: BLE001 - the caller raises it
                self.reports.put(_Failed(error))
                return

    def _fetch(self, entry: Entry) -> None:
        place = self.target / entry.path
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_name(f"{place.name}.part")
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                if not self._receive(entry, part):
                    return
            except Exception as error:
                if _is_about_the_disk(error):
                    raise
                what = str(Artifact.of_path(entry.path))
                failure = explain_download(self.title, error, what=what, registry=self.registry.describe())
                if isinstance(error, HTTPError):
                    error.close()
                if not failure.passing or attempt == _ATTEMPTS:
                    raise failure.error from error
                reason = failure.error.problem.removeprefix(f"Cannot fetch {self.title}: ")
                self.reports.put(_TryingAgain(attempt + 1, reason))
                self.stop.wait(_PAUSE_SECONDS[attempt - 1])
            else:
                part.rename(place)
                self.reports.put(_Finished(entry))
                return

    def _receive(self, entry: Entry, part: Path) -> bool:
        """Fetch the file, or the rest of it; false means that the caller no longer wants it."""
        there = part.stat().st_size if part.exists() else 0
        request = urllib.request.Request(self.registry.root + quote(entry.path))  # noqa: S310 - http(s) or file
        request.add_header("User-Agent", f"penstock/{__version__}")
        if self.registry.authorization:  # not for another host, should the registry redirect to one
            request.add_unredirected_header("Authorization", self.registry.authorization)
        if there:
            request.add_header("Range", f"bytes={there}-")
        with self.opener.open(request, timeout=_SILENCE_SECONDS) as response:
            if response.status != HTTPStatus.PARTIAL_CONTENT and there:
                self.reports.put(_Received(-there))
                there = 0
            with part.open("ab" if there else "wb") as file:
                if not self._copy(response, file, limit=entry.size - there):
                    return False
        self._check(entry, part)
        return True

    def _copy(self, response: IO[bytes], file: IO[bytes], *, limit: int) -> bool:
        while chunk := response.read(min(_CHUNK_BYTES, limit + 1)):
            if self.stop.is_set():
                return False
            file.write(chunk)
            self.reports.put(_Received(len(chunk)))
            limit -= len(chunk)
            if limit < 0:  # longer than the lock says: another file
                break
        return True

    def _check(self, entry: Entry, part: Path) -> None:
        size = part.stat().st_size
        if size < entry.size:  # what is there stays: the next attempt fetches the rest
            raise DamagedError(f"{size:,} of {entry.size:,} bytes")
        with part.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != entry.sha256:
            part.unlink()
            self.reports.put(_Received(-size))
            raise DamagedError(f"its SHA-256 is {digest}, not {entry.sha256}")


def _opener(registry: Registry) -> urllib.request.OpenerDirector:
    """Obey the proxies of the environment; one TLS context serves all, since each reads the system's certificates."""
    if not registry.root.startswith("https:"):
        return urllib.request.build_opener()
    return urllib.request.build_opener(urllib.request.HTTPSHandler(context=ssl.create_default_context()))


def _is_about_the_disk(error: Exception) -> bool:
    """A network error is an OSError too, but urllib wraps it, or it has another number."""
    return isinstance(error, OSError) and not isinstance(error, URLError) and error.errno in DISK_ERRORS
