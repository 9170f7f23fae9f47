"""``--health``: an answer for whoever watches over this process."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from penstock.engine import HealthBoard
from penstock.errors import ConfigError, SetupError

_LOOPBACK = "127.0.0.1"
_MAX_PORT = 65_535


@contextmanager
def serve_health(address: str, board: HealthBoard, *, stuck_after: float) -> Iterator[int]:
    """Answer GET requests with 200 or 503 and a report, as long as the block runs; gives the port."""
    host, port = parse_address(address)

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            report = board.report(stuck_after=stuck_after)
            body = json.dumps(report).encode()
            self.send_response(503 if report["status"] == "failing" else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """A probe every few seconds is no news."""

    try:
        server = ThreadingHTTPServer((host, port), Answer)
    except OSError as error:
        raise SetupError(
            f"--health {address} cannot be served: {error.strerror}.", hint="Name another port, or 0 for a free one."
        ) from error
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="health", daemon=True).start()
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
