"""A worker: one pytest process, the results that it has written, and the end of all processes that it started."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from suite.fork_server import ForkServer, Notes, tail

# All processes that a test starts inherit this, even in another session. It has no prefix PENSTOCK_, because apps would
# take it as an option.
TOKEN = "SUITE_WORKER"
# How long an interrupted worker may take to stop the servers that it has started.
_STOP_SECONDS = 90.0


def scratch_of(folder: Path, name: str) -> Path:
    """The folder for the files of a worker's tests."""
    return folder / f"tmp-{name}"


class Worker:
    """Runs until the queue of the run is empty."""

    def __init__(self, server: ForkServer, name: str, *, prefer: str = "") -> None:
        self.name = name
        self.prefer = prefer
        self._server = server
        self._scratch = scratch_of(server.folder, name)
        self._log = server.folder / f"{name}.log"
        self._notes = Notes(server.folder / f"{name}.jsonl")
        self._began = time.monotonic()
        self.seconds = 0.0
        server.fork(name, prefer=prefer)

    def new_notes(self) -> list[dict[str, Any]]:
        """What the worker has written since the last call."""
        return self._notes.new()

    @property
    def exit_code(self) -> int | None:
        code = self._server.code_of(self.name)
        if code is not None and not self.seconds:
            self.seconds = time.monotonic() - self._began
        return code

    def tail(self) -> str:
        """The end of its output, which says why it died."""
        return tail(self._log) if self._log.exists() else self._server.tail()

    def stop(self) -> None:
        """Interrupt it like Ctrl+C; its fixtures then stop their servers."""
        process = self._server.process_of(self.name)
        if process is not None:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGINT)

    def end(self, *, grace: float = 0.0) -> list[str]:
        """Wait until it ends, and kill the processes that it left running; returns their names.

        Processes that the worker has asked to stop, such as Spark's JVM, may run for ``grace`` seconds longer.
        """
        if (process := self._server.process_of(self.name)) is not None:
            with suppress(psutil.NoSuchProcess):
                try:
                    process.wait(_STOP_SECONDS)
                except psutil.TimeoutExpired:
                    process.kill()
                    process.wait(_STOP_SECONDS)
        _, left = psutil.wait_procs(self._left_running(), timeout=grace)
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, timeout=_STOP_SECONDS)
        return [f"{process.pid} {process.info['name']}" for process in left]

    def _left_running(self) -> list[psutil.Process]:
        worker, found = self._server.id_of(self.name), []
        for process in psutil.process_iter(["name", "environ", "cwd"]):
            environ, cwd = process.info["environ"] or {}, process.info["cwd"] or ""
            # A process that a test has forked shows the variables of the fork server, but is in the worker's session.
            forked = process.pid != worker is not None and _session_of(process) == worker
            if environ.get(TOKEN) == str(self._scratch) or Path(cwd).is_relative_to(self._scratch) or forked:
                found.append(process)
        return found


def _session_of(process: psutil.Process) -> int | None:
    try:
        return os.getsid(process.pid)
    except ProcessLookupError:
        return None
