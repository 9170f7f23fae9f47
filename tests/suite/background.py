"""A command that runs in parallel to the tests. Its output is printed when it has ended."""

import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Sequence

from suite.report import say


class Background:
    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._output = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115 - closed after it was printed
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self._output, stderr=subprocess.STDOUT, start_new_session=True
        )

    def finish(self) -> bool:
        """Wait for its end and print its output; returns whether it succeeded."""
        code = self._process.wait()
        self._output.seek(0)
        say(self._output.read().rstrip())
        self._output.close()
        if code:
            say(f"FAILED {shlex.join(self._command)} (code {code})")
        return code == 0

    def stop(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
            self._process.wait()
        self._output.close()
