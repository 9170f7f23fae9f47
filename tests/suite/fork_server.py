"""The runner's side of the fork server: a pytest process that collects the tests once, and then forks each worker.

To import and collect all tests takes several seconds of processor time, which each worker would need again.
"""

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

_TESTS = Path(__file__).parents[1]
_PYTEST = """
import sys
sys.path.insert(0, sys.argv.pop(1))
import pytest
from suite import plugin
sys.exit(pytest.main(["-p", "no:cacheprovider", *sys.argv[1:]], plugins=[plugin]))
"""
NAME = "fork-server"
_TAIL_LINES = 80
_END_SECONDS = 90.0
_LOOK_SECONDS = 0.05


class Notes:
    """A file to which another process appends a line of JSON for each note."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def new(self) -> list[dict[str, Any]]:
        """What was written since the last call."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._read)
            # The last line may be written only in part.
            complete = file.read().rpartition(b"\n")[0]
        self._read += len(complete) + bool(complete)
        return [json.loads(line) for line in complete.splitlines()]


class ForkServer:
    def __init__(self, folder: Path, path: str) -> None:
        self.folder = folder
        self._log = folder / f"{NAME}.log"
        self._notes = Notes(folder / f"{NAME}.jsonl")
        self._asked: set[str] = set()
        self._ids: dict[str, int] = {}
        self._forked: dict[str, psutil.Process] = {}
        self._codes: dict[str, int] = {}
        self._others: list[dict[str, Any]] = []
        requests, self._requests = os.pipe()
        command = [sys.executable, "-P", "-c", _PYTEST, str(_TESTS), f"--basetemp={folder / 'tmp'}"]
        command += [f"--suite-folder={folder}", f"--suite-requests={requests}", path]
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # PYTHONPATH contains this package. Programs that tests start must not find modules that their users
                # would not find.
                env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
                pass_fds=[requests],
                # Ctrl+C in the terminal reaches only the runner, which then stops the workers cleanly.
                start_new_session=True,
            )
        os.close(requests)

    def fork(self, name: str, *, prefer: str) -> None:
        """Ask for a worker; it starts when all tests are collected."""
        self._asked.add(name)
        request = json.dumps({"name": name, "prefer": prefer})
        with suppress(BrokenPipeError):  # it has ended, and `has_ended` says so
            os.write(self._requests, f"{request}\n".encode())

    def new_notes(self) -> list[dict[str, Any]]:
        """What it has written about the collection since the last call."""
        self._look()
        others, self._others = self._others, []
        return others

    def _look(self) -> None:
        for note in self._notes.new():
            match note["kind"]:
                case "forked":
                    self._ids[note["name"]] = note["process"]
                    with suppress(psutil.NoSuchProcess):
                        self._forked[note["name"]] = psutil.Process(note["process"])
                case "exited":
                    self._codes[note["name"]] = note["code"]
                case _:
                    self._others.append(note)

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def code_of(self, name: str) -> int | None:
        """The exit code of a worker, once it has ended."""
        ended = self.has_ended
        self._look()
        return self._codes.get(name, -1 if ended else None)

    def id_of(self, name: str) -> int | None:
        """The number of a worker's process, once it was forked."""
        self._look()
        return self._ids.get(name)

    def process_of(self, name: str) -> psutil.Process | None:
        """The process of a worker, once it was forked, unless it ended at once."""
        self._look()
        return self._forked.get(name)

    def tail(self) -> str:
        return tail(self._log)

    def close(self) -> None:
        """End it. Its workers must have ended."""
        if self._requests >= 0:
            os.close(self._requests)
            self._requests = -1
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def fork_no_more(self) -> None:
        """End the collection, or wait until all workers are forked, so that each can be stopped."""
        if not self.has_ended:
            self._process.send_signal(signal.SIGINT)  # it ignores this once it has collected
        deadline = time.monotonic() + _END_SECONDS
        while not (self.has_ended or self._asked <= self._known()) and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)

    def _known(self) -> set[str]:
        self._look()
        return self._ids.keys() | self._codes.keys()


def tail(log: Path) -> str:
    """The end of a process's output, which says why it died."""
    with log.open(errors="replace") as lines:
        return "".join(deque(lines, _TAIL_LINES))
