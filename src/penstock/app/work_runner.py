"""What a worker does with a work: attempt its records, and note their outcomes in its runs. Both engines work so."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from penstock.app.attempt import Attempt, attempts, attempts_async
from penstock.app.batch_attempt import BatchAttempt, batch_attempts, batch_attempts_async
from penstock.app.handler import Handler
from penstock.app.record_adapter import RecordAdapter
from penstock.app.task_cancellation import forget_cancellation
from penstock.app.work import Work
from penstock.core.failures.outcome import DONE, Failed
from penstock.core.progress.lease import Lease

Attend = Callable[[Work], None]
AttendAsync = Callable[[Work], Awaitable[None]]


def attending(handler: Handler, adapter: RecordAdapter, lease: Lease) -> Attend:
    """For a ``def`` handler, on the thread that calls it."""
    if handler.batch:
        return attend_in_batches(batch_attempts(handler, adapter), adapter, lease)
    return attend_one_by_one(attempts(handler, adapter), adapter, lease)


def attend_one_by_one(attempt: Attempt, adapter: RecordAdapter, lease: Lease) -> Attend:
    offset_of, clock = adapter.offset_of, time.monotonic

    def attend(work: Work) -> None:
        for run in work.runs():
            epoch, note = run.epoch, run.outcomes.append
            failures = epoch.failures
            for record in work.records(run):
                if not epoch.dispatching or clock() > lease.until:
                    break
                # Hardly ever has anything failed before, so hardly ever is there something to look up.
                outcome = attempt(record, failures.get(offset_of(record), 0) + 1 if failures else 1)
                note(outcome)
                if outcome is not DONE and isinstance(outcome, Failed) and work.stops_at(run, outcome):
                    break

    return attend


def attend_in_batches(attempt: BatchAttempt, adapter: RecordAdapter, lease: Lease) -> Attend:
    def attend(work: Work) -> None:
        records, numbers = work.as_batch(adapter.offset_of, lease)
        work.note_batch(attempt(records, numbers) if records else [])

    return attend


def attend_async(handler: Handler, adapter: RecordAdapter, lease: Lease) -> AttendAsync:
    """For an ``async def`` handler, as a task of an event loop."""
    offset_of, clock = adapter.offset_of, time.monotonic
    if handler.batch:
        attempt_batch = batch_attempts_async(handler, adapter)

        async def attend_in_batches(work: Work) -> None:
            records, numbers = work.as_batch(offset_of, lease)
            work.note_batch(await attempt_batch(records, numbers) if records else [])
            await forget_cancellation()

        return attend_in_batches
    attempt = attempts_async(handler, adapter)

    async def attend_one_by_one(work: Work) -> None:
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
                if isinstance(outcome, Failed) and work.stops_at(run, outcome):
                    break

    return attend_one_by_one
