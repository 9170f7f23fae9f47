"""The runs of ``penstock run`` on this machine, and how those that ended did.

Each run keeps a file about itself. The system may reuse a process id, so the file also has the creation time of the
process. A file whose process no longer exists, and that has no ending, belongs to a killed run.
"""

import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import psutil

from penstock.core.reports.events import Event, Rebalanced, Stopped, Stopping
from penstock.core.reports.record_counts import Counts
from penstock.core.settings import redacted
from penstock.errors import PenstockError
from penstock.jvm.private_files import make_private, write_durably
from penstock.ops.rebalance_history import HistoryFile
from penstock.paths import (
    LIVE_SUFFIX,
    REBALANCES_SUFFIX,
    SPARK_SUFFIX,
    WATCHED_SUFFIX,
    rebalance_history_file,
    run_file,
    runs_folder,
    state_home,
)

# How much the creation time of a process may change when the system's clock is set.
_SAME_BIRTH_SECONDS = 2.0

# How long the ending of a run is kept, for a `penstock stop` that waits for it.
_KEPT_SECONDS = 3600.0
# A history of rebalances is deleted this long after its last rebalance.
_HISTORY_KEPT_SECONDS = 7 * 24 * 3600.0
_KEPT_SUFFIXES = (REBALANCES_SUFFIX, SPARK_SUFFIX, LIVE_SUFFIX, WATCHED_SUFFIX)


@dataclass(frozen=True)
class Ending:
    """How a run ended, unless it was killed; ``problem`` is None after a clean stop."""

    at: float
    problem: str | None
    counts: Counts


@dataclass(frozen=True)
class RegisteredRun:
    """An app that a process on this machine runs, or has just run."""

    pid: int
    born: float
    host: str
    app: str
    engine: str
    groups: tuple[str, ...]
    stopping: bool = False
    ending: Ending | None = None
    socket: str | None = None
    """The path of the socket on which it takes commands."""

    def answers_to(self, name: str) -> bool:
        """Return whether ``name`` is the app, a group or the process id of this run."""
        return name in (self.app, str(self.pid)) or name in self.groups

    @property
    def process(self) -> psutil.Process | None:
        """The process, or None if it has ended or the id belongs to another process now."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.born) < _SAME_BIRTH_SECONDS
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None


class _Entry:
    """Writes the file of the current run."""

    def __init__(self, run: RegisteredRun) -> None:
        self._path = run_file(run.pid)
        self._run = run
        self._history = HistoryFile(rebalance_history_file(run.pid, run.born))
        self._counts = Counts()

    def write(self) -> None:
        write_durably(self._path, msgspec.json.encode(self._run))

    def on_event(self, event: Event) -> None:
        if isinstance(event, Stopping) and not self._run.stopping:
            self._run = replace(self._run, stopping=True)
            with suppress(OSError):
                self.write()
        elif isinstance(event, Stopped):
            self._counts += Counts(event.read, event.written, event.dead_lettered, event.skipped)
        elif isinstance(event, Rebalanced):
            with suppress(OSError):
                self._history.add(event)

    def end(self, problem: str | None) -> None:
        # An error may quote half of a character, which is no text for a file.
        said = problem and redacted(problem).encode(errors="replace").decode()
        self._run = replace(self._run, ending=Ending(time.time(), said, self._counts))
        with suppress(OSError):
            self.write()


@contextmanager
def registered(
    app: str, *, engine: str, groups: Sequence[str], warn: Callable[[str], None], socket: str | None = None
) -> Iterator[Callable[[Event], None]]:
    """Make this run visible to other processes for the block. Yields a listener for the run's events.

    A file that cannot be written does not stop the run: ``warn`` is called instead.
    """
    folder, process = runs_folder(), psutil.Process()
    run = RegisteredRun(
        process.pid,
        process.create_time(),
        platform.node(),
        app,
        engine,
        tuple(dict.fromkeys(groups)),
        socket=socket,
    )
    entry = _Entry(run)
    try:
        make_private(folder, home=state_home())
        _clean(folder)
        entry.write()
    except OSError as error:
        warn(f"`penstock stop` will not find this run, because {error.filename or folder} failed: {error.strerror}.")
    problem: str | None = "It ended unexpectedly."
    try:
        yield entry.on_event
        problem = None
    except PenstockError as error:
        problem = error.problem
        raise
    finally:
        entry.end(problem)


def alive(name: str | None = None, *, engine: str | None = None) -> list[RegisteredRun]:
    """Return the runs on this machine, or those of an app, a group or a process, the oldest first."""
    found = [
        run
        for run, _ in _read_all(runs_folder())
        if run.ending is None
        and run.process is not None
        and (name is None or run.answers_to(name))
        and (engine is None or run.engine == engine)
    ]
    return sorted(found, key=lambda run: run.born)


def recent() -> list[RegisteredRun]:
    """Return the runs on this machine that are alive, have just ended, or were killed; the newest first."""
    return sorted((run for run, _ in _read_all(runs_folder())), key=lambda run: -run.born)


def look_again(run: RegisteredRun) -> RegisteredRun:
    """Read the file of the run again. A killed run has no ending."""
    same = [each for each, _ in _read_all(runs_folder()) if (each.pid, each.born) == (run.pid, run.born)]
    return same[0] if same else run


def _read_all(folder: Path) -> Iterator[tuple[RegisteredRun, Path]]:
    for path in sorted(folder.glob("*.json")):
        # Another process may have deleted it, or it is another kind of file.
        with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
            run = msgspec.json.decode(path.read_bytes(), type=RegisteredRun)
            if run.host == platform.node():
                yield run, path


def remove_socket(path: Path) -> None:
    """Delete the socket of a run, and the folder that was made only for it."""
    with suppress(OSError):
        path.unlink(missing_ok=True)
        if path.parent != runs_folder():
            path.parent.rmdir()


def _clean(folder: Path) -> None:
    """Delete the files and sockets of killed runs, and of runs that ended long ago."""
    for run, path in _read_all(folder):
        ended_at = run.ending.at if run.ending else 0.0
        if run.process is None and time.time() - ended_at > _KEPT_SECONDS:
            path.unlink(missing_ok=True)
            # A process with the same id may have started since, and listen there.
            if run.socket is not None and not psutil.pid_exists(run.pid):
                remove_socket(Path(run.socket))
    for path in (each for suffix in _KEPT_SUFFIXES for each in folder.glob(f"*{suffix}")):
        # The files of a killed run are kept too, so their age decides.
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _HISTORY_KEPT_SECONDS:
                path.unlink()
