"""An event loop with the bench's clock: a handler that sleeps wakes when the test moves the clock.

The loop runs until no callback is ready. Tasks that still wait (for a timer, for an ``asyncio.Event`` of the test) stay
in progress until the next time.
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

# How many real seconds to wait for a thread, and for an answer on a socket. Without either, the loop does not wait.
_THREAD_SECONDS = 60.0
_SOCKET_SECONDS = 1.0
# The loop itself registers one end of a pipe, so that threads can wake it.
_OWN_FILES = 1


class HandDrivenLoop(asyncio.SelectorEventLoop):
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._executor_futures: set[asyncio.Future[Any]] = set()
        self._in_use = False
        self._ending = False
        self.next_due = inf
        """When the next timer is due."""
        super().__init__(_Selector(self))

    def time(self) -> float:
        return self._clock()

    def create_task(self, *args: Any, **options: Any) -> Any:
        self._in_use = True
        return super().create_task(*args, **options)

    def settle(self) -> None:
        """Run until no callback is ready. Before the first task there is nothing to run."""
        if not self._in_use:
            return
        if _is_loop_running():
            raise ConfigError(
                "The bench cannot run async handlers here, because another event loop is running on this thread.",
                hint="Write the test with def, or use a thread: await asyncio.to_thread(bench.run_until_idle).",
            )
        while True:
            # If a task that a handler started raises SystemExit, asyncio also raises it out of run_forever.
            with suppress(SystemExit):
                self.run_forever()
                return

    def cancel_all(self) -> None:
        """Cancel all tasks; they end first when the loop runs again."""
        for task in asyncio.all_tasks(self):
            end_task(task)

    def end(self) -> None:
        """Cancel all tasks and close the loop.

        The garbage collector may call this while another loop runs on this thread, where asyncio forbids running this
        one: then it ends on a new thread.
        """
        if not _is_loop_running():
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
        self._executor_futures.add(future)
        future.add_done_callback(self._executor_futures.discard)
        return future

    def patience(self, files: int) -> float:
        """How many real seconds to wait for threads and sockets."""
        if self._executor_futures or self._ending:
            return _THREAD_SECONDS
        return _SOCKET_SECONDS if files > _OWN_FILES else 0.0

    def on_quiet(self, timeout: float | None) -> None:
        """Stop the loop: no callback is ready, and the next timer is due in ``timeout`` seconds."""
        self.next_due = inf if timeout is None else self.time() + timeout
        self.stop()


def _is_loop_running() -> bool:
    # Not in an except block of ``settle``: its error would be the context of every error that a handler raises.
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class _Selector(selectors.DefaultSelector):
    """Stops the loop where asyncio would wait: a loop asks its selector to wait only if no callback is ready."""

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
