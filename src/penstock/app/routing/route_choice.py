"""Chooses the route of a record from its raw form; only routes by type need its decoded value."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.app.attempts.handler_failure import failure_maker
from penstock.app.attempts.record_adapter import RecordAdapter
from penstock.app.handler import Handler
from penstock.app.routing.route_group import RouteGroup
from penstock.app.routing.value_types import decoder_of_union
from penstock.app.routing.when import When, read_when
from penstock.core.failures.outcome import Failed, Outcome, Skipped, Unrouted, failed
from penstock.core.routing.conditions import last_values
from penstock.core.text.readable_bytes import as_text
from penstock.errors import ConfigError, HandlerBug

Chosen = tuple[int, Any]
"""The number of the route, and what its attempt gets: the record, or a ``DecodedRecord``."""
Choose = Callable[[Any, int], Chosen | Outcome]
"""Takes a record and the number of the attempt. It returns an outcome for a record that no route gets, and raises only
what ``RecordAdapter.reraises`` picks."""

_SHOWN_VALUE = 60


class DecodedRecord:
    """A record with its decoded value."""

    __slots__ = ("record", "value")

    def __init__(self, record: Any, value: Any) -> None:
        self.record = record
        self.value = value


@dataclass(frozen=True)
class _Test:
    when: When
    types: tuple[type, ...]


def choice(group: RouteGroup, adapter: RecordAdapter) -> Choose:
    choose = _choice(group, adapter)
    replayed = () if group.replay_range is None else group.replay_range.routes
    return _only(choose, group, replayed) if replayed else choose


def _only(choose: Choose, group: RouteGroup, replayed: Sequence[str]) -> Choose:
    """For a replay of some routes: all other records are finished without a call."""
    names = [route.name for route in group.routes]
    reason = f"this replay runs only {', '.join(replayed)}"

    def choose_replayed(record: Any, number: int) -> Chosen | Outcome:
        chosen = choose(record, number)
        name = names[chosen[0]] if isinstance(chosen, tuple) else chosen.handler
        return chosen if name in replayed else Skipped(reason, handler=name)

    return choose_replayed


def _choice(group: RouteGroup, adapter: RecordAdapter) -> Choose:
    tests = [_test(route) for route in group.routes]
    fails = [failure_maker(route, adapter) for route in group.routes]
    names = [route.name for route in group.routes]
    has_headers = any(test.when.headers for test in tests)
    union = next((route.value for route in group.routes if route.value_types), None)
    decode = None if union is None else decoder_of_union(union)
    headers_of, key_of, value_of, to_record = adapter.headers_of, adapter.key_of, adapter.value_of, adapter.to_record
    unrouted = _unrouted_maker(group, tests, adapter)

    def choose(record: Any, number: int) -> Chosen | Outcome:
        index = 0
        decoded: DecodedRecord | None = None
        try:
            last = last_values(headers_of(record)) if has_headers else {}
            for index, test in enumerate(tests):
                when = test.when
                if when.headers and not all(condition.holds(last) for condition in when.headers):
                    continue
                if when.key is not None and not when.key.holds(key_of(record)):
                    continue
                if when.function is not None and not _holds(when.function(to_record(record, number))):
                    continue
                if test.types and decode is not None:
                    if decoded is None:
                        decoded = DecodedRecord(record, decode(value_of(record)))
                    if type(decoded.value) not in test.types:
                        continue
                    return index, decoded
                return index, record
        except BaseException as error:  # noqa: BLE001 - whatever a condition raises is a failure of this record
            return replace(fails[index](error), handler=names[index])
        return unrouted(record)

    return choose


def _test(route: Handler) -> _Test:
    if route.when is None:
        return _Test(When(), route.value_types)
    return _Test(read_when(route.when, lambda problem, hint: ConfigError(problem, hint=hint)), route.value_types)


def _holds(result: Any) -> bool:
    if isinstance(result, bool):
        return result
    raise HandlerBug(f"the function of when= returned {type(result).__name__}, and not a bool")


def _unrouted_maker(group: RouteGroup, tests: list[_Test], adapter: RecordAdapter) -> Callable[[Any], Outcome]:
    """A function that makes the outcome of a record that no route takes."""
    otherwise = group.chosen_otherwise
    looked_at = list(dict.fromkeys(condition.name for test in tests for condition in test.when.headers))
    names = ", ".join(route.name for route in group.routes)

    def unrouted(record: Any) -> Outcome:
        reason = f"no handler takes this record ({names}){_shown(looked_at, record, adapter)}"
        if otherwise == "skip":
            return Skipped(reason)
        failure: Failed = failed(Unrouted(reason))
        return replace(failure, halts=True) if otherwise == "stop" else failure

    return unrouted


def _shown(names: list[str], record: Any, adapter: RecordAdapter) -> str:
    """What the record has of the headers that the conditions name."""
    last = last_values(adapter.headers_of(record))
    shown = [
        f"header {name} is {as_text(last[name], limit=_SHOWN_VALUE)}" if name in last else f"it has no header {name}"
        for name in names
    ]
    return f": {', '.join(shown)}" if shown else ""
