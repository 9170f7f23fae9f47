"""What a worker does with a ``Work``: attempt its records and append their outcomes to its runs.

The workers of the local engine, of Spark and of the testing kit all use it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

from penstock.app.attempts.attempt import Attempt
from penstock.app.attempts.batch_attempt import BatchAttempt
from penstock.app.attempts.record_adapter import RecordAdapter
from penstock.app.attempts.task_cancellation import forget_cancellation
from penstock.app.attempts.work import Work
from penstock.app.handler import Handler
from penstock.app.routing.routed_attempts import attempts, attempts_async, batch_attempts, batch_attempts_async
from penstock.core.failures.outcome import DONE, Unfinished
from penstock.core.progress.lease import Lease

RunWork = Callable[[Work], None]
RunWorkAsync = Callable[[Work], Awaitable[None]]


def work_runner(handler: Handler, adapter: RecordAdapter, lease: Lease) -> RunWork:
    """The function that runs a work of a ``def`` handler, on the thread that calls it."""
    if handler.batch:
        return batch_runner(batch_attempts(handler, adapter), adapter, lease)
    return single_record_runner(attempts(handler, adapter), adapter, lease)


def single_record_runner(attempt: Attempt, adapter: RecordAdapter, lease: Lease) -> RunWork:
    offset_of, clock = adapter.offset_of, time.monotonic

    def run_work(work: Work) -> None:
        for run in work.runs():
            epoch, add_outcome = run.epoch, run.outcomes.append
            failures = epoch.failures
            for record in work.records(run):
                if not epoch.dispatching or clock() > lease.until:
                    break
                # Most epochs have no failures, so most records need no look-up.
                outcome = attempt(record, failures.get(offset_of(record), 0) + 1 if failures else 1)
                add_outcome(outcome)
                if outcome is not DONE and isinstance(outcome, Unfinished) and work.stops_at(run, outcome):
                    break

    return run_work


def batch_runner(attempt: BatchAttempt, adapter: RecordAdapter, lease: Lease) -> RunWork:
    def run_work(work: Work) -> None:
        records, numbers = work.as_batch(adapter.offset_of, lease)
        work.note_batch(attempt(records, numbers) if records else [])

    return run_work


def async_work_runner(handler: Handler, adapter: RecordAdapter, lease: Lease) -> RunWorkAsync:
    """The coroutine function that runs a work of an ``async def`` handler, as a task of an event loop."""
    offset_of, clock = adapter.offset_of, time.monotonic
    if handler.batch:
        attempt_batch = batch_attempts_async(handler, adapter)

        async def run_batch(work: Work) -> None:
            records, numbers = work.as_batch(offset_of, lease)
            work.note_batch(await attempt_batch(records, numbers) if records else [])
            await forget_cancellation()

        return run_batch
    attempt = attempts_async(handler, adapter)

    async def run_records(work: Work) -> None:
        task = asyncio.current_task()
        for run in work.runs():
            epoch = run.epoch
            for record in work.records(run):
                if not epoch.dispatching or clock() > lease.until:
                    break
                outcome = await attempt(record, epoch.attempt_at(offset_of(record)) if epoch.failures else 1)
                run.outcomes.append(outcome)
                if task is not None and task.cancelling():
                    await forget_cancellation()
                if isinstance(outcome, Unfinished) and work.stops_at(run, outcome):
                    break

    return run_records
