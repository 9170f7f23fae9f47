"""Commands in a terminal: what a person types and sees."""

import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from kafka_helpers import WAIT_SECONDS


class Terminal:
    """A command in a terminal of its own, of 80 columns."""

    def __init__(self, *words: str) -> None:
        self._own, other = pty.openpty()
        command = [sys.executable, "-m", "penstock", *words]
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
        self._process = subprocess.Popen(
            command, stdin=other, stdout=other, stderr=other, env=environment, start_new_session=True
        )
        os.close(other)
        self._readable = select.poll()  # select() fails if this process has many open files
        self._readable.register(self._own, select.POLLIN)
        self.shown = ""

    def wait_for(self, text: str) -> None:
        deadline = monotonic() + WAIT_SECONDS
        while text not in self.shown:
            assert monotonic() < deadline, self.shown
            if self._readable.poll(100):
                self.shown += os.read(self._own, 4096).decode(errors="replace")
            else:
                assert self._process.poll() is None, self.shown

    def press(self, keys: str) -> None:
        self.shown = ""
        os.write(self._own, keys.encode())

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def end(self) -> int:
        try:
            return self._process.wait(WAIT_SECONDS)
        finally:
            self._process.kill()
            os.close(self._own)


@contextmanager
def terminal(*words: str) -> Iterator[Terminal]:
    opened = Terminal(*words)
    try:
        yield opened
    except BaseException:
        opened.end()
        raise
