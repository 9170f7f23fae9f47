"""A small HTTP server that receives webhooks: `python receiver.py 8099`. GET / lists what it has got.

/busy answers 503 to the first request with each id; /gone always answers 410.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

received: dict[str, dict[str, str]] = {}
"""The body and the path of each delivery, by its id."""
refused: set[str] = set()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        name, body = self.headers["Idempotency-Key"], self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/gone":
            self.send_error(410)
        elif self.path == "/busy" and name not in refused:
            refused.add(name)
            self.send_error(503)
        else:
            received[name] = {"path": self.path, "body": body.decode()}
            self._answer(b"")

    def do_GET(self) -> None:
        self._answer(json.dumps(received).encode())

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


def serve(port: int) -> ThreadingHTTPServer:
    return ThreadingHTTPServer(("127.0.0.1", port), Receiver)


if __name__ == "__main__":
    serve(int(sys.argv[1])).serve_forever()
