"""Requests to the Maven registry, with the mirror's password, proxies, timeouts and retries."""

import re
import ssl
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote

from penstock._version import __version__
from penstock.jvm.download_errors import DamagedError, explain_download, is_missing
from penstock.jvm.maven_registry import MavenRegistry, find_registry
from penstock.jvm.private_files import DISK_ERRORS

ATTEMPTS = 3
# Before the second attempt and before the third.
_PAUSE_SECONDS = (1.0, 4.0)
# Timeout of the connection and of each read.
_SILENCE_SECONDS = 30.0
_SHA1 = re.compile(rb"\b[0-9a-fA-F]{40}\b")

_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class MavenConnection:
    registry: MavenRegistry
    opener: urllib.request.OpenerDirector

    def open(self, path: str, *, start: int = 0) -> Any:
        """Request the file at this path of the registry, from the byte ``start`` on."""
        request = urllib.request.Request(self.registry.root + quote(path))  # noqa: S310 - http(s) or file
        request.add_header("User-Agent", f"penstock/{__version__}")
        if self.registry.authorization:  # not sent to another host after a redirect
            request.add_unredirected_header("Authorization", self.registry.authorization)
        if start:
            request.add_header("Range", f"bytes={start}-")
        return self.opener.open(request, timeout=_SILENCE_SECONDS)

    def read(self, path: str) -> bytes:
        """Download a small file. Raise if it is incomplete."""
        with self.open(path) as response:
            content: bytes = response.read()
        return content

    def has(self, path: str) -> bool:
        try:
            self.open(path).close()
        except URLError as error:
            if is_missing(error):
                return False
            raise
        return True

    def sha1(self, path: str) -> str | None:
        """Return the SHA-1 from the registry, or None: not every registry has it."""
        try:
            content = self.read(f"{path}.sha1")
        except URLError as error:
            if is_missing(error):
                return None
            raise
        found = _SHA1.search(content)  # alone, or before or after the name of the file
        if not found:
            raise DamagedError("the file with its SHA-1 holds none")
        return found[0].decode().lower()

    def persist(
        self,
        action: Callable[[], _Answer],
        *,
        title: str,
        what: str,
        on_retry: Callable[[int, str], None],
        pause: Callable[[float], object],
    ) -> _Answer:
        """Repeat the action while its failure may pass; then raise an error that explains why ``what`` is missing.

        ``on_retry`` gets the number of the next attempt and the reason for it.
        """
        attempt = 1
        while True:
            try:
                return action()
            except Exception as error:
                if _is_about_the_disk(error):
                    raise
                failure = explain_download(title, error, what=what, registry=self.registry.describe())
                if isinstance(error, HTTPError):
                    error.close()
                if not failure.passing or attempt == ATTEMPTS:
                    raise failure.error from error
                attempt += 1
                on_retry(attempt, failure.error.problem.removeprefix(f"Cannot fetch {title}: "))
                pause(_PAUSE_SECONDS[attempt - 2])


def connect() -> MavenConnection:
    """Connect with the proxies of the environment. One TLS context is shared: creating one reads all certificates."""
    registry = find_registry()
    if not registry.root.startswith("https:"):
        return MavenConnection(registry, urllib.request.build_opener())
    handler = urllib.request.HTTPSHandler(context=ssl.create_default_context())
    return MavenConnection(registry, urllib.request.build_opener(handler))


def _is_about_the_disk(error: Exception) -> bool:
    """Network errors are OSErrors too, but they are wrapped in URLError or have other numbers."""
    return isinstance(error, OSError) and not isinstance(error, URLError) and error.errno in DISK_ERRORS
