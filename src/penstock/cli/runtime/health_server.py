"""``--health``: answers liveness and readiness probes over HTTP."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from penstock.core.settings import redacted_values
from penstock.core.text.host_names import can_be_looked_up
from penstock.engine import HealthBoard
from penstock.errors import ConfigError, SetupError

_LOOPBACK = "127.0.0.1"
# The probes, and a list of them. A misspelled path gets 404, so that it does not look like a healthy app.
PROBES = {
    "/live": "503 if a member does not poll, or a record is in progress for too long: restart the app",
    "/ready": "503 until every member has its partitions, and while a dependency cannot be reached, a breaker pauses a "
    "handler, or the app stops",
}
PATHS = ("/", *PROBES)
# A connection that sends no request for so long is closed, so that idle connections do not accumulate.
_SILENCE_SECONDS = 10.0
_MAX_PORT = 65_535
# How often the server checks whether it must stop. The end of a run waits for this.
_STOP_CHECK_SECONDS = 0.05


@contextmanager
def serve_health(address: str, board: HealthBoard, *, stuck_after: float) -> Iterator[int]:
    """Answer GET and HEAD of ``PATHS`` while the block runs; probes get 200 or 503 and a report. Yields the port."""
    host, port = parse_address(address)

    class ProbeAnswer(BaseHTTPRequestHandler):
        server_version, sys_version = "penstock", ""
        timeout = _SILENCE_SECONDS

        def do_GET(self) -> None:
            self._answer(*_answer_to(self.path.partition("?")[0], board, stuck_after))

        do_HEAD = do_GET  # noqa: N815 - as the server calls it

        def __getattr__(self, name: str) -> Callable[[], None]:
            """The server looks up ``do_METHOD``: all methods but GET and HEAD get 405."""
            if not name.startswith("do_"):
                raise AttributeError(name)
            return lambda: self._answer(405, {"error": "Only GET and HEAD are answered."})

        def _answer(self, status: int, content: Mapping[str, Any]) -> None:
            body = json.dumps(redacted_values(content)).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            if status == 405:  # noqa: PLR2004 - as above
                self.send_header("Allow", "GET, HEAD")
                self.close_connection = True  # the body of the request is not read
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Do not log requests: a probe comes every few seconds."""

    try:
        server = ThreadingHTTPServer((host, port), ProbeAnswer)
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


def _answer_to(path: str, board: HealthBoard, stuck_after: float) -> tuple[int, Mapping[str, Any]]:
    match path:
        case "/live":
            report = board.report(stuck_after=stuck_after)
            return 503 if report["status"] == "failing" else 200, report
        case "/ready":
            report = board.ready_report()
            return 200 if report["status"] == "ready" else 503, report
        case "/":
            return 200, {"paths": PROBES}
    return 404, {"error": "This path does not exist.", "paths": PATHS}


def parse_address(address: str, *, flag: str = "--health") -> tuple[str, int]:
    """Parse ``HOST:PORT``, or ``PORT`` on loopback."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or int(port) > _MAX_PORT:
        raise ConfigError(f"{flag} {address!r} is not a port.", hint="Write PORT or HOST:PORT, as in 0.0.0.0:8080.")
    if not can_be_looked_up(host):
        raise ConfigError(f"{flag} {address!r} names no host.", hint="Write PORT or HOST:PORT, as in 0.0.0.0:8080.")
    return host or _LOOPBACK, int(port)
