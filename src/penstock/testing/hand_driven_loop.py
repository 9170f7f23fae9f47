"""An event loop whose time is the bench's, so that a handler that sleeps wakes when the clock is moved.

It runs until nothing is ready any more. What is still waiting then (for a timer, for an ``asyncio.Event`` of the test)
stays in progress until the next time.
"""

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from math import inf
from threading import Thread
from typing import Any, TypeVar, TypeVarTuple

from penstock.app import end_task
from penstock.errors import ConfigError

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

# How long real work outside of the loop may take: a thread, and an answer on a socket. Without any, nothing is waited.
_THREAD_SECONDS = 60.0
_SOCKET_SECONDS = 1.0
# The loop itself has one end of a pipe registered, by which threads wake it.
_OWN_FILES = 1


class HandDrivenLoop(asyncio.SelectorEventLoop):
    def __init__(self, clock: Callable[[], float]) -> None:
        self._hand = clock
        self._outside: set[asyncio.Future[Any]] = set()
        self._in_use = False
        self._ending = False
        self.next_due = inf
        """When the next timer rings."""
        super().__init__(_Selector(self))

    def time(self) -> float:
        return self._hand()

    def create_task(self, *args: Any, **options: Any) -> Any:
        self._in_use = True
        return super().create_task(*args, **options)

    def settle(self) -> None:
        """Run until nothing is ready. Nothing ever is before the first task."""
        if not self._in_use:
            return
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            while True:
                # asyncio lets it out of a task that a handler started, besides handing it to whoever awaits it.
                with suppress(SystemExit):
                    self.run_forever()
                    return
        raise ConfigError(
            "The bench runs async handlers on an event loop of its own, and another one is running here.",
            hint="Write the test with def, or turn in a thread: await asyncio.to_thread(bench.run_until_idle).",
        )

    def cancel_all(self) -> None:
        """Whatever is still in progress ends, before anything else, when the loop runs again."""
        for task in asyncio.all_tasks(self):
            end_task(task)

    def end(self) -> None:
        """Give back what the system lent it.

        The garbage collector asks for this at any moment, also while another loop runs on this thread, which forbids to
        run this one: then it ends on a thread of its own.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self._end()
            return
        ending = Thread(target=self._end)
        ending.start()
        ending.join()

    def _end(self) -> None:
        self.cancel_all()
        self.settle()
        self._ending = True
        self.run_until_complete(self.shutdown_asyncgens())
        self.run_until_complete(self.shutdown_default_executor())
        self.close()

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        future = super().run_in_executor(executor, func, *args)
        self._outside.add(future)
        future.add_done_callback(self._outside.discard)
        return future

    def patience(self, files: int) -> float:
        """How many real seconds to wait for what happens outside of the loop."""
        if self._outside or self._ending:
            return _THREAD_SECONDS
        return _SOCKET_SECONDS if files > _OWN_FILES else 0.0

    def on_quiet(self, timeout: float | None) -> None:
        """Nothing is ready, and no timer rings for so long."""
        self.next_due = inf if timeout is None else self.time() + timeout
        self.stop()


class _Selector(selectors.DefaultSelector):
    """Where a loop would wait is where this one ends: it asks for a wait only when nothing is ready."""

    def __init__(self, loop: HandDrivenLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return super().select(0)
        found = super().select(self._loop.patience(len(self.get_map())))
        if not found:
            self._loop.on_quiet(timeout)
        return found
