"""The attempts that engines call: of one handler, or of a route group, which chooses the route of each record first.

A handler that is no route group gets its own attempt function, so it costs nothing that others have routes.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from typing import Any, TypeVar

from penstock.app.attempts.attempt import RECORDS, AsyncAttempt, Attempt
from penstock.app.attempts.attempt import attempts as attempts_of_one
from penstock.app.attempts.attempt import attempts_async as attempts_of_one_async
from penstock.app.attempts.batch_attempt import AsyncBatchAttempt, BatchAttempt
from penstock.app.attempts.batch_attempt import batch_attempts as batch_attempts_of_one
from penstock.app.attempts.batch_attempt import batch_attempts_async as batch_attempts_of_one_async
from penstock.app.attempts.record_adapter import Begin, Opened, RecordAdapter
from penstock.app.handler import Handler
from penstock.app.routing.route_choice import choice
from penstock.app.routing.route_group import RouteGroup
from penstock.app.routing.value_types import given
from penstock.core.failures.outcome import DONE, HELD, Done, Held, Outcome

T = TypeVar("T")

Label = Callable[[Outcome], Outcome]


def attempts(handler: Handler, adapter: RecordAdapter = RECORDS) -> Attempt:
    """A function that attempts a record and returns an outcome; it never raises."""
    if not isinstance(handler, RouteGroup):
        return attempts_of_one(handler, adapter)
    choose, routes, labels = choice(handler, adapter), _made(attempts_of_one, handler, adapter), _labels(handler)

    def attempt(record: Any, number: int) -> Outcome:
        chosen = choose(record, number)
        if not isinstance(chosen, tuple):
            return chosen
        index, to_attempt = chosen
        return labels[index](routes[index](to_attempt, number))

    return attempt


def attempts_async(handler: Handler, adapter: RecordAdapter = RECORDS) -> AsyncAttempt:
    """Like ``attempts`` for ``async def`` handlers. It raises only when Penstock cancels its task."""
    if not isinstance(handler, RouteGroup):
        return attempts_of_one_async(handler, adapter)
    choose, routes, labels = choice(handler, adapter), _made(attempts_of_one_async, handler, adapter), _labels(handler)

    async def attempt(record: Any, number: int) -> Outcome:
        chosen = choose(record, number)
        if not isinstance(chosen, tuple):
            return chosen
        index, to_attempt = chosen
        return labels[index](await routes[index](to_attempt, number))

    return attempt


def batch_attempts(handler: Handler, adapter: RecordAdapter = RECORDS) -> BatchAttempt:
    """A function that attempts a batch and never raises. It takes the records and the attempt number of each."""
    if not isinstance(handler, RouteGroup):
        return batch_attempts_of_one(handler, adapter)
    batches, labels = _Batches(handler, adapter), _labels(handler)
    routes = _made(batch_attempts_of_one, handler, adapter)

    def attempt(records: list[Any], numbers: list[int]) -> list[Outcome]:
        outcomes, parts = batches.divided(records, numbers)
        for route, indexes, part in parts:
            found = routes[route](part, [numbers[index] for index in indexes])
            for index, outcome in zip(indexes, found, strict=True):
                outcomes[index] = labels[route](outcome)
        return outcomes

    return attempt


def batch_attempts_async(handler: Handler, adapter: RecordAdapter = RECORDS) -> AsyncBatchAttempt:
    """Like ``batch_attempts`` for ``async def`` handlers."""
    if not isinstance(handler, RouteGroup):
        return batch_attempts_of_one_async(handler, adapter)
    batches, labels = _Batches(handler, adapter), _labels(handler)
    routes = _made(batch_attempts_of_one_async, handler, adapter)

    async def attempt(records: list[Any], numbers: list[int]) -> list[Outcome]:
        outcomes, parts = batches.divided(records, numbers)
        for route, indexes, part in parts:
            found = await routes[route](part, [numbers[index] for index in indexes])
            for index, outcome in zip(indexes, found, strict=True):
                outcomes[index] = labels[route](outcome)
        return outcomes

    return attempt


_Part = tuple[int, list[int], list[Any]]
"""A route, the positions of its records in the batch, and these records."""


class _Batches:
    """Divides a batch between the routes. A handler gets only the records that it takes."""

    def __init__(self, group: RouteGroup, adapter: RecordAdapter) -> None:
        self._choose = choice(group, adapter)
        self._keeps_order = group.order != "none"

    def divided(self, records: Sequence[Any], numbers: Sequence[int]) -> tuple[list[Outcome], list[_Part]]:
        """An outcome for each record (of those that no route gets, the final one), and the parts of the batch.

        Two records of one key may be for different routes. So where order matters, only neighbours form a part.
        """
        outcomes: list[Outcome] = [DONE] * len(records)
        taken: list[tuple[int, int, Any]] = []
        for index, (record, number) in enumerate(zip(records, numbers, strict=True)):
            chosen = self._choose(record, number)
            if isinstance(chosen, tuple):
                taken.append((chosen[0], index, chosen[1]))
            else:
                outcomes[index] = chosen
        if not self._keeps_order:
            taken.sort(key=lambda each: each[0])
        parts: list[_Part] = []
        for route, found in groupby(taken, key=lambda each: each[0]):
            each = list(found)
            parts.append((route, [index for _, index, _ in each], [record for _, _, record in each]))
        return outcomes, parts


def _made(make: Callable[[Handler, RecordAdapter], T], group: RouteGroup, adapter: RecordAdapter) -> list[T]:
    decoded = _of_decoded(adapter)
    return [
        make(replace(route, value=given), decoded) if route.value_types else make(route, adapter)
        for route in group.routes
    ]


def _of_decoded(adapter: RecordAdapter) -> RecordAdapter:
    """The adapter for a ``DecodedRecord``: the value is the decoded one, all else is that of its record."""
    return replace(
        adapter,
        to_record=lambda each, number: adapter.to_record(each.record, number),
        value_of=lambda each: each.value,
        offset_of=lambda each: adapter.offset_of(each.record),
        key_of=lambda each: adapter.key_of(each.record),
        headers_of=lambda each: adapter.headers_of(each.record),
        topic_of=lambda each: adapter.topic_of(each.record),
        begin=None if adapter.begin is None else _begin_of_decoded(adapter.begin),
    )


def _begin_of_decoded(begin: Begin) -> Begin:
    @contextmanager
    def begin_of_decoded() -> Iterator[Opened]:
        with begin() as (tx, finish):
            yield tx, lambda records: finish([each.record for each in records])

    return begin_of_decoded


def _labels(group: RouteGroup) -> list[Label]:
    return [_label(route.name) for route in group.routes]


def _label(name: str) -> Label:
    """A function that notes the name of the route in an outcome."""
    done, held = Done(handler=name), Held(handler=name)

    def label(outcome: Outcome) -> Outcome:
        if outcome is DONE:
            return done
        if outcome is HELD:
            return held
        if isinstance(outcome, Done):
            outcome.handler = name
            return outcome
        return replace(outcome, handler=name)

    return label
