"""A worker: one pytest process, the results that it has written, and the end of all processes that it started."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

# All processes that a test starts inherit this, even in another session. It has no prefix PENSTOCK_, because apps would
# take it as an option.
TOKEN = "SUITE_WORKER"
# How long an interrupted worker may take to stop the servers that it has started.
_STOP_SECONDS = 90.0
_TESTS = Path(__file__).parents[1]
_PYTEST = """
import sys
sys.path.insert(0, sys.argv.pop(1))
import pytest
from suite import plugin
sys.exit(pytest.main(["-p", "no:cacheprovider", *sys.argv[1:]], plugins=[plugin]))
"""
_TAIL_LINES = 80


class Worker:
    """Runs until the queue of the run is empty."""

    def __init__(self, folder: Path, name: str, path: str, *, prefer: str = "") -> None:
        self.name = name
        self.prefer = prefer
        self._folder = folder
        self._scratch = folder / f"tmp-{name}"
        self._log = folder / f"{name}.log"
        self._notes = folder / f"{name}.jsonl"
        self._read = 0
        self._began = time.monotonic()
        self.seconds = 0.0
        command = [sys.executable, "-P", "-c", _PYTEST, str(_TESTS), f"--basetemp={self._scratch}"]
        command += [f"--suite-folder={folder}", f"--suite-worker={name}", f"--suite-prefer={prefer}", path]
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment(),
                # Ctrl+C in the terminal reaches only the runner, which then stops the workers cleanly.
                start_new_session=True,
            )

    def _environment(self) -> dict[str, str]:
        # PYTHONPATH contains this package. Programs that tests start must not find modules that their users would not
        # find.
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return {**kept, TOKEN: str(self._scratch)}

    def new_notes(self) -> list[dict[str, Any]]:
        """What the worker has written since the last call."""
        if not self._notes.exists():
            return []
        with self._notes.open("rb") as file:
            file.seek(self._read)
            # The last line may be written only in part.
            complete = file.read().rpartition(b"\n")[0]
        self._read += len(complete) + bool(complete)
        return [json.loads(line) for line in complete.splitlines()]

    @property
    def exit_code(self) -> int | None:
        code = self._process.poll()
        if code is not None and not self.seconds:
            self.seconds = time.monotonic() - self._began
        return code

    def tail(self) -> str:
        """The end of its output, which says why it died."""
        with self._log.open(errors="replace") as lines:
            return "".join(deque(lines, _TAIL_LINES))

    def stop(self) -> None:
        """Interrupt it like Ctrl+C; its fixtures then stop their servers."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def end(self, *, grace: float = 0.0) -> list[str]:
        """Wait until it ends, and kill the processes that it left running; returns their names.

        Processes that the worker has asked to stop, such as Spark's JVM, may run for ``grace`` seconds longer.
        """
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        _, left = psutil.wait_procs(self._left_running(), timeout=grace)
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, timeout=_STOP_SECONDS)
        return [f"{process.pid} {process.info['name']}" for process in left]

    def _left_running(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter(["name", "environ", "cwd"]):
            environ, cwd = process.info["environ"] or {}, process.info["cwd"] or ""
            if environ.get(TOKEN) == str(self._scratch) or Path(cwd).is_relative_to(self._scratch):
                found.append(process)
        return found
