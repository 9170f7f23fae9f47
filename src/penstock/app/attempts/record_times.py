"""Times in the headers of a record: from when and until when its handler may be called.

``Producer.send`` writes two of them, which handlers with ``honor_times=True`` follow. A retry topic has a third, after
``Later``. All are checked just before the handler would be called, so a wait survives restarts and rebalances.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from penstock.app.attempts.record_adapter import RecordAdapter
from penstock.app.handler import Handler
from penstock.core.failures.outcome import Delayed, Expired, Outcome, Undecodable, failed
from penstock.core.records.origin import RetryHeader, number
from penstock.core.records.time_headers import read_times

Check = Callable[[Any], Outcome | None]
"""The outcome of a record for which the handler must not be called now; else None."""


def in_time(
    handler: Handler, adapter: RecordAdapter, attempt: Callable[[Any, int], Outcome]
) -> Callable[[Any, int], Outcome]:
    """The attempt, made only when the times of the record allow it. The attempt itself if none can have times."""
    check = _check_of(handler, adapter)
    if check is None:
        return attempt

    def attempt_in_time(record: Any, number: int) -> Outcome:
        outcome = check(record)
        return attempt(record, number) if outcome is None else outcome

    return attempt_in_time


def in_time_async(
    handler: Handler, adapter: RecordAdapter, attempt: Callable[[Any, int], Awaitable[Outcome]]
) -> Callable[[Any, int], Awaitable[Outcome]]:
    check = _check_of(handler, adapter)
    if check is None:
        return attempt

    async def attempt_in_time(record: Any, number: int) -> Outcome:
        outcome = check(record)
        return await attempt(record, number) if outcome is None else outcome

    return attempt_in_time


def batch_in_time(
    handler: Handler, adapter: RecordAdapter, attempt: Callable[[list[Any], list[int]], list[Outcome]]
) -> Callable[[list[Any], list[int]], list[Outcome]]:
    check = _check_of(handler, adapter)
    if check is None:
        return attempt

    def attempt_in_time(records: list[Any], numbers: list[int]) -> list[Outcome]:
        outcomes = list(map(check, records))
        due = [index for index, outcome in enumerate(outcomes) if outcome is None]
        made = attempt([records[index] for index in due], [numbers[index] for index in due]) if due else []
        return _merged(outcomes, made)

    return attempt_in_time


def batch_in_time_async(
    handler: Handler, adapter: RecordAdapter, attempt: Callable[[list[Any], list[int]], Awaitable[list[Outcome]]]
) -> Callable[[list[Any], list[int]], Awaitable[list[Outcome]]]:
    check = _check_of(handler, adapter)
    if check is None:
        return attempt

    async def attempt_in_time(records: list[Any], numbers: list[int]) -> list[Outcome]:
        outcomes = list(map(check, records))
        due = [index for index, outcome in enumerate(outcomes) if outcome is None]
        made = await attempt([records[index] for index in due], [numbers[index] for index in due]) if due else []
        return _merged(outcomes, made)

    return attempt_in_time


def _merged(outcomes: list[Outcome | None], made: list[Outcome]) -> list[Outcome]:
    """Fill the gaps with the outcomes of the records that were attempted."""
    rest = iter(made)
    return [next(rest) if outcome is None else outcome for outcome in outcomes]


def may_have_times(handler: Handler) -> bool:
    """Whether a record of this handler may have to wait, or may be too late."""
    return bool(handler.retry_topics) or handler.honor_times


def _check_of(handler: Handler, adapter: RecordAdapter) -> Check | None:
    """The check for this handler; None if its records can have no times, so that it costs them nothing."""
    returned = _check_returned(handler, adapter) if handler.retry_topics else None
    honored = _check_honored(handler, adapter) if handler.honor_times else None
    if returned is None or honored is None:
        return returned or honored
    return lambda record: returned(record) or honored(record)


def _check_returned(handler: Handler, adapter: RecordAdapter) -> Check:
    """Records in a retry topic after Later: the wait of the topic can be shorter than what the handler asked for."""
    topic_of, headers_of, wall_clock = adapter.topic_of, adapter.headers_of, adapter.wall_clock
    delayed = handler.delayed

    def check(record: Any) -> Outcome | None:
        if topic_of(record) not in delayed:
            return None
        until = number(dict(headers_of(record) or ()).get(RetryHeader.UNTIL))
        return None if until is None else _wait(until / 1000, wall_clock(), "the handler raised Later")

    return check


def _check_honored(handler: Handler, adapter: RecordAdapter) -> Check:
    headers_of, wall_clock, retry = adapter.headers_of, adapter.wall_clock, handler.retry

    def check(record: Any) -> Outcome | None:
        headers = headers_of(record)
        if not headers:
            return None
        times = read_times(headers)
        if times.problem:
            # To handle it could be too early or too late: a dead letter keeps it, and somebody looks at it.
            return failed(Undecodable(times.problem), retry)
        now = wall_clock()
        if times.expires is not None and times.expires <= now:
            return Expired(f"expired {now - times.expires:.1f} s ago")
        return None if times.not_before is None else _wait(times.not_before, now, "its producer set not_before")

    return check


def _wait(until: float, now: float, reason: str) -> Delayed | None:
    return Delayed(until - now, until, reason) if until > now else None
