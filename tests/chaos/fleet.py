"""Starts, kills and freezes the processes of a chaos run. It signals only processes that it started, by their ids."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path

from chaos.history import Entry, Fault, read_events
from chaos.java_member import ended_well as java_ended_well
from chaos.java_member import read_java_events, start_java_member

_TESTS = Path(__file__).parents[1]
_END_SECONDS = 240.0


class Process:
    """One `penstock run`, with its own events file and handler log, or a member in Java."""

    def __init__(self, name: str, folder: Path, environment: Mapping[str, str], kind: str, app: str) -> None:
        self.name = name
        self.kind = kind
        self.events_file = folder / f"{name}.events.jsonl"
        self.handler_log_file = folder / f"{name}.handler_log"
        self.errors_file = folder / f"{name}.err"
        self.expects_death = False
        if kind == "java":
            self.popen = start_java_member(environment, folder, name, self.events_file)
            return
        path = os.pathsep.join([str(_TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
        with self.errors_file.open("w") as errors:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", "penstock", "run", app, "--events", str(self.events_file)],
                cwd=folder,
                env={
                    **os.environ,
                    **environment,
                    "PYTHONPATH": path,
                    "CHAOS_HANDLER_LOG": str(self.handler_log_file),
                    "CHAOS_MEMBER": kind,
                },
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )

    @property
    def has_partitions(self) -> bool:
        return bool(self.reported("assigned"))

    def reported(self, *kinds: str) -> list[Entry]:
        """The events so far, of these kinds or of all."""
        if not self.events_file.exists():
            return []
        with self.events_file.open(errors="replace", newline="\n") as lines:
            read = read_java_events if self.kind == "java" else read_events
            return [entry for entry in read(self.name, lines) if not kinds or entry.kind in kinds]

    def ended_well(self, code: int) -> bool:
        if self.kind == "java":
            return java_ended_well(code)
        # A process that gets the signal before it has installed its signal handler has nothing to finish.
        ends = {-signal.SIGTERM, 128 + signal.SIGTERM}  # before and after its imports
        return code == 0 or (code in ends and not self.has_begun)

    @property
    def has_begun(self) -> bool:
        return self.events_file.exists() and self.events_file.stat().st_size > 0


class Fleet:
    """Members of these kinds, in turns. ``faults`` is the log of what happened to them."""

    def __init__(
        self, folder: Path, environment: Mapping[str, str], kinds: Sequence[str], *, app: str = "chaos.app:app"
    ) -> None:
        self._folder = folder
        self._app = app
        self._kinds = cycle(kinds)
        self._environment = environment
        self.processes: list[Process] = []
        self.faults: list[Fault] = []
        self._frozen: tuple[Process, float, float] | None = None

    def start(self) -> Process:
        name = f"p{len(self.processes) + 1:02}"
        process = Process(name, self._folder, self._environment, next(self._kinds), self._app)
        self.processes.append(process)
        return process

    @property
    def awake(self) -> list[Process]:
        """The processes that run and are neither frozen nor stopping."""
        frozen = self._frozen[0] if self._frozen else None
        return [each for each in self.processes if not each.expects_death and each is not frozen]

    @property
    def has_frozen(self) -> bool:
        return self._frozen is not None

    def join(self) -> None:
        self._note("join", self.start())

    def kill(self, process: Process) -> None:
        process.expects_death = True
        self._note("kill", process)
        process.popen.kill()

    def leave(self, process: Process) -> None:
        process.expects_death = True
        self._note("leave", process)
        process.popen.send_signal(signal.SIGTERM)

    def freeze(self, process: Process, seconds: float) -> None:
        now = time.time()
        self._frozen = process, now, now + seconds
        process.popen.send_signal(signal.SIGSTOP)

    def thaw(self, *, now: float) -> bool:
        """Resume a process whose freeze is over; True if there was one."""
        if self._frozen is None or self._frozen[2] > now:
            return False
        process, since, _ = self._frozen
        self._frozen = None
        # Write it down before the signal, so that all later events have a later time.
        self.faults.append(Fault(kind="freeze", process=process.name, ts=since, until=time.time()))
        process.popen.send_signal(signal.SIGCONT)
        return True

    def crashed(self) -> list[str]:
        """The processes that ended unexpectedly or with an error, with the end of their output."""
        found = []
        for each in self.processes:
            killed = any(fault.kind == "kill" and fault.process == each.name for fault in self.faults)
            code = each.popen.poll()
            if code is not None and (not each.expects_death or not (killed or each.ended_well(code))):
                found.append(f"{each.name} ended with {code}: {each.errors_file.read_text(errors='replace')[-500:]}")
        return found

    def stop(self) -> None:
        """Stop all of them cleanly."""
        self.thaw(now=float("inf"))
        for process in self.awake:
            process.expects_death = True
            process.popen.send_signal(signal.SIGTERM)
        for process in self.processes:
            process.popen.wait(_END_SECONDS)

    def close(self) -> None:
        """Kill the processes that still run."""
        for process in self.processes:
            if process.popen.poll() is None:
                process.popen.kill()
            process.popen.wait()

    def _note(self, kind: str, process: Process) -> None:
        self.faults.append(Fault(kind=kind, process=process.name, ts=time.time()))  # type: ignore[arg-type]
