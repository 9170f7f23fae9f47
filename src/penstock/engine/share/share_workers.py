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
from penstock.app.engine_threads import mark_engine_thread
from penstock.core.failures.outcome import Failed, Outcome
from penstock.engine.dispatch.thread_messages import EngineError
from penstock.engine.workers.event_loop import OnEventLoop
from penstock.engine.workers.worker_pools import worker_failure

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


class Workers(Protocol):
    def submit(self, message: Message, attempt: int) -> None: ...
    def close(self) -> None: ...


def make_workers(handler: Handler, adapter: RecordAdapter, report: Report) -> Workers:
    return _Tasks(handler, adapter, report) if handler.signature.is_async else _Threads(handler, adapter, report)


class _Threads:
    """One thread for each record that may be in progress; a poll returns no more records than that."""

    def __init__(self, handler: Handler, adapter: RecordAdapter, report: Report) -> None:
        self._handler = handler
        self._attempt = attempts(handler, adapter)
        self._report = report
        self._queue: SimpleQueue[tuple[Message, int] | None] = SimpleQueue()
        # A handler that never returns must not keep the process alive past its drain timeout.
        self._threads = [
            threading.Thread(target=self._work, name=f"{handler.name}-worker-{number}", daemon=True)
            for number in range(1, handler.concurrency + 1)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, message: Message, attempt: int) -> None:
        self._queue.put((message, attempt))

    def close(self) -> None:
        for _ in self._threads:
            self._queue.put(None)

    def _work(self) -> None:
        mark_engine_thread()
        try:
            while (given := self._queue.get()) is not None:
                message, attempt = given
                until = time.monotonic() + _DEPENDENCY_WAIT_SECONDS
                while (wait := _wait(outcome := self._attempt(message, attempt), until)) is not None:
                    time.sleep(wait)
                self._report(Attempted(message, outcome))
        except BaseException as error:  # noqa: BLE001 - without a report, the record would never be acknowledged
            self._report(worker_failure(self._handler, error))


class _Tasks(OnEventLoop):
    """One asyncio task for each record."""

    def __init__(self, handler: Handler, adapter: RecordAdapter, report: Report) -> None:
        self._handler = handler
        self._attempt = attempts_async(handler, adapter)
        self._report = report
        super().__init__(handler.name)

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


def _wait(outcome: Outcome, until: float) -> float | None:
    """Return how long to wait before the attempt is repeated because a dependency was unavailable; else None."""
    wait = outcome.wait if isinstance(outcome, Failed) else None
    return wait if wait is not None and time.monotonic() + wait < until else None
