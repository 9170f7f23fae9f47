"""``--health``: an answer for whoever watches over this process."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from penstock.core.settings import redacted_values
from penstock.engine import HealthBoard
from penstock.errors import ConfigError, SetupError

_LOOPBACK = "127.0.0.1"
# Where probes may ask. A misspelled path must not look like an app that is well.
PATHS = ("/", "/health", "/healthz")
# How long a connection may take to say what it wants, so that silent ones do not pile up.
_SILENCE_SECONDS = 10.0
_MAX_PORT = 65_535
# How often the server looks whether it is to stop: the end of a run waits for that.
_STOP_CHECK_SECONDS = 0.05


@contextmanager
def serve_health(address: str, board: HealthBoard, *, stuck_after: float) -> Iterator[int]:
    """Answer GET and HEAD of ``PATHS`` with 200 or 503 and a report, as long as the block runs; gives the port."""
    host, port = parse_address(address)

    class Answer(BaseHTTPRequestHandler):
        server_version, sys_version = "penstock", ""
        timeout = _SILENCE_SECONDS

        def do_GET(self) -> None:
            if self.path.partition("?")[0] not in PATHS:
                self._answer(404, {"error": "This path does not exist.", "paths": PATHS})
                return
            report = board.report(stuck_after=stuck_after)
            self._answer(503 if report["status"] == "failing" else 200, report)

        do_HEAD = do_GET  # noqa: N815 - as the server calls it

        def __getattr__(self, name: str) -> Callable[[], None]:
            """Every other method is looked for here, by its name."""
            if not name.startswith("do_"):
                raise AttributeError(name)
            return lambda: self._answer(405, {"error": "Only GET and HEAD are answered."})

        def _answer(self, status: int, told: Mapping[str, Any]) -> None:
            body = json.dumps(redacted_values(told)).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            if status == 405:  # noqa: PLR2004 - as above
                self.send_header("Allow", "GET, HEAD")
                self.close_connection = True  # what else was sent is not read
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """A probe every few seconds is no news."""

    try:
        server = ThreadingHTTPServer((host, port), Answer)
    except OSError as error:
        raise SetupError(
            f"--health {address} cannot be served: {error.strerror}.", hint="Choose another port, or 0 for a free one."
        ) from error
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(_STOP_CHECK_SECONDS,), name="health", daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def parse_address(address: str, *, flag: str = "--health") -> tuple[str, int]:
    """``PORT`` on loopback, or ``HOST:PORT``."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or int(port) > _MAX_PORT:
        raise ConfigError(f"{flag} {address!r} is not a port.", hint="Write PORT or HOST:PORT, as in 0.0.0.0:8080.")
    return host or _LOOPBACK, int(port)
