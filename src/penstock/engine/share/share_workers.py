"""Workers of a share group. They run each record separately, in any order."""

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Protocol

from confluent_kafka import Message

from penstock.app import Handler, RecordAdapter, attempts, attempts_async, forget_cancellation, is_ended
from penstock.app.attempts.attempt import Attempt
from penstock.app.dispatching.engine_threads import mark_engine_thread
from penstock.core.failures.outcome import Failed, Outcome
from penstock.engine.dispatch.thread_messages import EngineError
from penstock.engine.workers.event_loop import OnEventLoop
from penstock.engine.workers.worker_pools import worker_failure
from penstock.engine.workers.worker_resources import ThreadResources
from penstock.errors import CallbackError

# How long a record waits for an unavailable dependency, such as a schema registry. Each release would use one of the
# few deliveries that a record has. The wait must end well before the record's lock expires.
_DEPENDENCY_WAIT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Attempted:
    """A worker has attempted this record."""

    message: Message
    outcome: Outcome


Report = Callable[[Attempted | EngineError], None]
"""Called on a worker's thread."""


class ShareWorkers(Protocol):
    def submit(self, message: Message, attempt: int) -> None: ...

    def close(self) -> CallbackError | None:
        """End the workers and close their resources. Returns what went wrong with that."""


def make_workers(handler: Handler, adapter: RecordAdapter, report: Report, stop: threading.Event) -> ShareWorkers:
    """Make the workers, and the resources of an event loop; raises what those raise. ``stop`` gives them up."""
    return _Tasks(handler, adapter, report, stop) if handler.signature.is_async else _Threads(handler, adapter, report)


class _Threads:
    """One thread for each record that may be in progress; a poll returns no more records than that."""

    def __init__(self, handler: Handler, adapter: RecordAdapter, report: Report) -> None:
        self._handler = handler
        self._adapter = adapter
        self._report = report
        self._resources = ThreadResources(handler, lambda error: report(EngineError(error, fatal=True)))
        self._queue: SimpleQueue[tuple[Message, int] | None] = SimpleQueue()
        # A handler that never returns must not keep the process alive past its drain timeout.
        self._threads = [
            threading.Thread(target=self._work, name=f"{handler.name}-worker-{number}", daemon=True)
            for number in range(1, handler.largest_concurrency + 1)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, message: Message, attempt: int) -> None:
        self._queue.put((message, attempt))

    def close(self) -> CallbackError | None:
        for _ in self._threads:
            self._queue.put(None)
        return self._resources.close(self._threads) if self._handler.wiring.resources else None

    def _work(self) -> None:
        mark_engine_thread()
        try:
            with self._resources.on_this_thread() as handler:
                self._attempt_all(attempts(handler, self._adapter))
        except BaseException as error:  # noqa: BLE001 - without a report, the record would never be acknowledged
            self._report(worker_failure(self._handler, error))

    def _attempt_all(self, attempt: Attempt) -> None:
        while (given := self._queue.get()) is not None:
            message, number = given
            until = time.monotonic() + _DEPENDENCY_WAIT_SECONDS
            while (wait := _wait(outcome := attempt(message, number), until)) is not None:
                time.sleep(wait)
            self._report(Attempted(message, outcome))


class _Tasks(OnEventLoop):
    """One asyncio task for each record."""

    def __init__(self, handler: Handler, adapter: RecordAdapter, report: Report, stop: threading.Event) -> None:
        self._report = report
        super().__init__(handler, stop=stop, report=lambda error: report(EngineError(error, fatal=True)))
        self._attempt = attempts_async(self._handler, adapter)

    def submit(self, message: Message, attempt: int) -> None:
        self._loop.call_soon_threadsafe(lambda: self._begin(self._work(message, attempt)))

    async def _work(self, message: Message, attempt: int) -> None:
        try:
            until = time.monotonic() + _DEPENDENCY_WAIT_SECONDS
            while (wait := _wait(outcome := await self._attempt(message, attempt), until)) is not None:
                await forget_cancellation()
                await asyncio.sleep(wait)
            self._report(Attempted(message, outcome))
        except BaseException as error:
            if not is_ended(asyncio.current_task()):
                self._report(worker_failure(self._handler, error))
            raise
        finally:
            self._end()


def _wait(outcome: Outcome, until: float) -> float | None:
    """Return how long to wait before the attempt is repeated because a dependency was unavailable; else None."""
    wait = outcome.wait if isinstance(outcome, Failed) else None
    return wait if wait is not None and time.monotonic() + wait < until else None
