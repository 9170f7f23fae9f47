"""The latest run of one app in this process, which ``app.stop`` and ``app.wait`` act on."""

import threading
from concurrent.futures import Future
from typing import Protocol

from penstock.app.runs.replay_options import ReplayResult
from penstock.errors import StateError


class Run(Protocol):
    """What ``penstock.lifecycle`` implements: one run of an app, from start to end. Any thread may call it."""

    started: Future[None]
    """Done when the engine consumes for every handler, or when the run has ended."""
    ended: Future[None]
    """Done when the run has ended, cleanly or not. It never has an exception: see ``failure``."""
    failure: BaseException | None
    """Why the run failed."""
    replay_result: ReplayResult | None
    """What the run has replayed, from its end on; None if it was no replay, or failed."""

    def start(self) -> None:
        """Run the app on a thread of its own."""

    def run_here(self) -> None:
        """Run the app on the calling thread, take SIGINT and SIGTERM, and raise the failure."""

    def ask_to_stop(self) -> None:
        """Request a clean stop and return at once. Twice is fine."""

    def raise_failure(self, *, again: bool = True) -> None:
        """Raise why the run failed; with ``again=False`` only if no call has raised it yet."""


class RunSlot:
    """Holds the latest run. When an app is pickled for another process, the copy has an empty slot."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._run: Run | None = None

    def __reduce__(self) -> tuple[type["RunSlot"], tuple[()]]:
        return (RunSlot, ())

    @property
    def is_running(self) -> bool:
        run = self._run
        return run is not None and not run.ended.done()

    @property
    def replay_result(self) -> ReplayResult | None:
        return None if self._run is None else self._run.replay_result

    def put(self, run: Run, app: str) -> None:
        """Make this the latest run. The one before must have ended."""
        with self._lock:
            if self.is_running:
                raise StateError(
                    f"App {app!r} is running already in this process.",
                    hint="Stop it first. For more members of its group, declare members=N or start more processes.",
                )
            self._run = run

    def get(self, app: str, call: str) -> Run:
        if self._run is None:
            raise StateError(
                f"App {app!r} was not started in this process, so {call} has nothing to act on.",
                hint="Call app.start() first.",
            )
        return self._run
