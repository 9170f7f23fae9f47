"""A Maven registry on the loopback address. A test adds its files and switches its faults on."""

import hashlib
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from penstock.jvm.manifest import Entry


@dataclass
class MavenRegistry:
    """``faults`` has the next answers for each path: a status, or how much of the file is sent."""

    files: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, list[int | float]] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    # Requests for these paths are not answered until the registry closes.
    silent: set[str] = field(default_factory=set)
    # Requests for these paths are answered when the test sets ``released``.
    held: set[str] = field(default_factory=set)
    released: threading.Event = field(default_factory=threading.Event)
    heard: threading.Event = field(default_factory=threading.Event)
    closing: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/maven2"

    def lock(self) -> tuple[Entry, ...]:
        return tuple(
            Entry(path, len(content), hashlib.sha256(content).hexdigest()) for path, content in self.files.items()
        )


@contextmanager
def maven_registry() -> Iterator[MavenRegistry]:
    registry = MavenRegistry()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _answer(registry, self)

        def log_message(self, *_: object) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        registry.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield registry
        finally:
            registry.closing.set()
            registry.released.set()
            server.shutdown()
            thread.join()


def _answer(registry: MavenRegistry, request: http.server.BaseHTTPRequestHandler) -> None:
    path = request.path.removeprefix("/maven2/")
    wanted = request.headers.get("Range")
    registry.asked.append((path, wanted))
    registry.headers.append(dict(request.headers))
    registry.heard.set()
    if path in registry.silent:
        registry.closing.wait()
        return
    if path in registry.held:
        registry.released.wait()
    pending = registry.faults.get(path)
    fault = pending.pop(0) if pending else 1.0
    if isinstance(fault, int):
        request.send_error(fault)
    elif path not in registry.files:
        request.send_error(404)
    else:
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        rest = registry.files[path][start:]
        request.send_response(206 if wanted else 200)
        request.send_header("Content-Length", str(len(rest)))
        request.end_headers()
        request.wfile.write(rest[: int(len(rest) * fault)])
