"""``penstock run --reload``: runs the app in a child process, and restarts it cleanly when its code changes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

_LOOK_SECONDS = 0.3
_SOURCES = (".py", ".toml", ".avsc", ".proto")
_NOT_SOURCES = frozenset({"__pycache__", "node_modules"})
# Signals forwarded to the run, which stops cleanly on the first one. SIGHUP, from a closed terminal, means the same.
_PASSED_ON = {signal.SIGINT: signal.SIGINT, signal.SIGTERM: signal.SIGTERM, signal.SIGHUP: signal.SIGTERM}


def run_again_and_again(config: Path | None, say: Callable[[str], None]) -> int:
    """Run this process's command, without ``--reload``, again and again. Return the exit code of the last run."""
    command = [sys.executable, "-m", "penstock", *(each for each in sys.argv[1:] if each != "--reload")]
    others = () if config is None else (config,)
    return Reloader(command, look=lambda: sources(Path.cwd(), *others), say=say).run()


def sources(folder: Path, *others: Path) -> dict[Path, int]:
    """Return the modification time of each source file below ``folder``, without installed packages."""
    paths = [*others]
    for here, folders, names in os.walk(folder):
        folders[:] = [each for each in folders if not _is_installed(Path(here, each))]
        paths += [Path(here, name) for name in names if name.endswith(_SOURCES)]
    found = {}
    for path in paths:
        with suppress(OSError):  # deleted in the meantime
            found[path] = path.stat().st_mtime_ns
    return found


def _is_installed(folder: Path) -> bool:
    return folder.name.startswith(".") or folder.name in _NOT_SOURCES or (folder / "pyvenv.cfg").exists()


class Reloader:
    """Starts one run after the other until a signal stops it. After a failed run it waits until the code changes."""

    def __init__(
        self, command: Sequence[str], *, look: Callable[[], Mapping[Path, int]], say: Callable[[str], None]
    ) -> None:
        self._command = command
        self._look = look
        self._say = say
        self._stopping = False  # a signal asked to stop
        self._signals: list[signal.Signals] = []  # received, not yet forwarded

    def run(self) -> int:
        """Return the exit code of the last run."""
        with self._collecting_signals():
            while True:
                seen = self._look()
                # In its own process group: the terminal's Ctrl+C reaches only this process, which forwards it once.
                run = subprocess.Popen(self._command, process_group=0)
                changed = self._watch(run, seen)
                if changed is not None:
                    run.terminate()
                code = self._wait(run)
                if changed is None or self._stopping:
                    return code
                self._say(f"{changed} has changed: restarting.")

    def _watch(self, run: "subprocess.Popen[bytes]", seen: Mapping[Path, int]) -> str | None:
        """Return the name of a changed file, or None when the run has ended well or is to stop."""
        has_failed = False
        while not self._stopping:
            now = self._look()
            if now != seen:
                return min(path for path, _ in now.items() ^ seen.items()).name
            if run.poll() == 0:
                return None
            if run.poll() is not None and not has_failed:
                has_failed = True
                self._say(f"The app ended with exit code {_exit_code(run.returncode)}. Waiting until its code changes.")
            time.sleep(_LOOK_SECONDS)
        return None

    def _wait(self, run: "subprocess.Popen[bytes]") -> int:
        """Forward signals until the run has ended."""
        while True:
            while self._signals:
                run.send_signal(self._signals.pop(0))
            with suppress(subprocess.TimeoutExpired):
                return _exit_code(run.wait(_LOOK_SECONDS))

    @contextmanager
    def _collecting_signals(self) -> Iterator[None]:
        def on_signal(number: int, _frame: FrameType | None) -> None:
            self._stopping = True
            self._signals.append(_PASSED_ON[signal.Signals(number)])

        before = {number: signal.signal(number, on_signal) for number in _PASSED_ON}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _exit_code(code: int) -> int:
    """Return 128 plus the signal's number for a process that a signal ended, as shells do."""
    return code if code >= 0 else 128 - code
