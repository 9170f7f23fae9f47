"""Runs one record through a handler, attempt by attempt, as the engines would; writes and commits nothing."""

import asyncio
import time
from bdb import BdbQuit
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from penstock.app import App, Handler, attempts, attempts_async, batch_attempts, batch_attempts_async
from penstock.app.attempts.record_adapter import RecordAdapter
from penstock.app.resources import AsyncResources, OpenResources
from penstock.app.routing.route_choice import choice
from penstock.app.routing.route_group import RouteGroup
from penstock.codecs import RECORDS
from penstock.core.failures.dead_letter import dead_letter
from penstock.core.failures.outcome import (
    Delayed,
    Done,
    Failed,
    Halt,
    Held,
    Outcome,
    Postpone,
    ProducerRecord,
    ToDeadLetter,
    TryAgain,
    decide,
)
from penstock.core.failures.retry_topic import read_retry_info
from penstock.core.records.record import Record, TopicPartition
from penstock.core.text.plurals import counted
from penstock.core.text.suggestions import suggestion
from penstock.errors import CallbackError, ConfigError, TopicError
from penstock.kafka import Cluster
from penstock.kafka.read.read_records import read_positions

T = TypeVar("T")


@dataclass(frozen=True)
class DebuggedAttempt:
    """One attempt: its outcome, what the engine would do next, and the records that it would write."""

    number: int
    seconds: float
    outcome: Outcome
    then: str
    writes: tuple[ProducerRecord, ...] = ()
    error: BaseException | None = None


def find_record(cluster: Cluster, tp: TopicPartition, offset: int) -> Record:
    """Read the record at this offset. Raise an error that says why there is none."""
    topic, partition = tp
    count = cluster.require_topics([topic])[topic]
    if partition >= count:
        numbers = "only partition 0" if count == 1 else f"partitions 0 to {count - 1}"
        raise TopicError(f"Topic {topic!r} has no partition {partition}.", hint=f"It has {numbers}.")
    where = f"{topic}[{partition}]@{offset}"
    low, high = cluster.start_offsets([tp])[tp], cluster.end_offsets([tp])[tp]
    if offset < low:
        raise TopicError(
            f"{where} is not in the log any more: retention or a deletion has removed all records below {low}.",
            hint=f"Name an offset from {low} to {high - 1}." if low < high else "The partition is empty.",
        )
    if offset >= high:
        raise TopicError(
            f"{where} is not written yet: the log ends at {high}.",
            hint=f"Name an offset from {low} to {high - 1}." if low < high else "The partition is empty.",
        )
    if offset >= cluster.stable_ends([tp])[tp]:
        raise TopicError(
            f"{where} may belong to a transaction that is still open, so no handler gets it yet.",
            hint="Try again when the transaction has ended.",
        )
    for record in read_positions(cluster, {tp: [offset]}):
        return record
    raise TopicError(
        f"{where} has no record: it was compacted away, its transaction was aborted, or it is the marker of a "
        "transaction.",
        hint=f"See the records beside it with `penstock tail {topic} --partition {partition} --offset {offset}`.",
    )


def handler_of(app: App, tp: TopicPartition, name: str | None) -> Handler:
    """Return the handler that gets the records of this partition."""
    topic, partition = tp
    if name is not None and not any(_is_named(handler, name) for handler in app.handlers):
        known = [handler.name for handler in app.declared_handlers]
        raise ConfigError(f"App {app.name!r} has no handler {name!r}.", hint=suggestion(name, known))
    found = [
        handler
        for handler in app.handlers
        if (name is None or _is_named(handler, name))
        and handler.consumes(topic)
        and (not handler.partitions or tp in handler.partitions)
    ]
    if not found:
        who = f"Handler {name}" if name is not None else f"No handler of app {app.name!r}"
        verb = "does not consume" if name is not None else "consumes"
        sources = "; ".join(f"{handler.name} consumes {handler.source}" for handler in app.handlers)
        if any(handler.dead_letter == topic for handler in app.handlers):
            sources = "It has dead letters: name the record that failed, which `penstock dlq show` prints"
        raise ConfigError(f"{who} {verb} {topic}[{partition}].", hint=f"{sources}." if sources else "It has none.")
    if len(found) > 1:
        names = ", ".join(handler.name for handler in found)
        raise ConfigError(
            f"{counted(len(found), 'handler')} of app {app.name!r} consume {topic}[{partition}]: {names}.",
            hint="Choose one with --handler NAME.",
        )
    return app.wired_handlers()[app.handlers.index(found[0])]


def _is_named(handler: Handler, name: str) -> bool:
    return name == handler.name or any(name == route.name for route in handler.routes)


def route_of(handler: Handler, record: Record, name: str | None) -> Handler:
    """Return the route that gets the record, or the handler itself if it has no routes, or none of them gets it."""
    if not isinstance(handler, RouteGroup):
        return handler
    chosen = choice(handler, RECORDS)(record, 1)
    route = handler.routes[chosen[0]] if isinstance(chosen, tuple) else handler
    if name not in (None, handler.name, route.name):
        who = f"{route.name} gets it" if isinstance(chosen, tuple) else "none of them gets it"
        names = ", ".join(each.name for each in handler.routes)
        raise ConfigError(
            f"Handler {name} does not get {record}: of the handlers that share it ({names}), {who}.",
            hint="Leave --handler out, or name another record.",
        )
    return route


def first_attempt(handler: Handler, record: Record) -> int:
    """Return the number of the record's next attempt: 1, unless it waits in a retry topic."""
    topic = handler.delayed.get(record.topic)
    if topic is None:
        return 1
    info = read_retry_info(record.headers, group=handler.group, longest=topic.seconds, now=time.time())
    return info.failures + 1


def debug_attempts(
    handler: Handler, record: Record, *, most: int, first: int = 1, call: Callable[..., Any] | None = None
) -> Iterator[DebuggedAttempt]:
    """Attempt the record until the engine would attempt it no more, without the waits between attempts.

    ``most`` limits the number of attempts. ``call``, such as ``pdb.runcall``, calls the handler's function instead.
    """
    if handler.signature.takes_transaction:
        raise ConfigError(
            f"Handler {handler.name} takes tx, whose transaction would write to your database.",
            hint="Call the function in a test, with a transaction that the test rolls back.",
        )
    raised = _Raised()
    with asyncio.Runner() as runner, _with_resources(handler, runner) as wired:
        attempt = _attempt_maker(wired, replace(RECORDS, reraises=raised.note), call, runner)
        yield from _attempts(handler, record, attempt, raised, range(first, first + most))


def _attempts(
    handler: Handler, record: Record, attempt: Callable[[Record, int], Outcome], raised: "_Raised", numbers: range
) -> Iterator[DebuggedAttempt]:
    for number in numbers:
        raised.error = None
        acks: list[int] = []
        copy = _copy(record, number)
        if handler.commit == "manual":
            copy.acknowledged_by(partial(acks.append, number))
        began = time.perf_counter()
        outcome = attempt(copy, number)
        seconds = time.perf_counter() - began
        then, writes, goes_on = _what_follows(handler, record, outcome, number, acked=bool(acks))
        yield DebuggedAttempt(number, seconds, outcome, then, writes, raised.error)
        if not goes_on:
            return


class _Raised:
    """Keeps the error of an attempt with its frames, for a debugger. The outcome has only text."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def note(self, error: BaseException) -> bool:
        self.error = error
        # The user has left the debugger: that is no outcome of the record.
        return isinstance(error, BdbQuit)


@contextmanager
def _with_resources(handler: Handler, runner: asyncio.Runner) -> Iterator[Handler]:
    """Make all resources of the handler, also those of partitions, and close them at the end."""
    needed, opened = handler.wiring.resources, OpenResources()
    close: Callable[[], CallbackError | None]
    if handler.signature.is_async:
        on_loop = AsyncResources(needed, {})
        values, close = runner.run(on_loop.make()), partial(_run_on, runner, on_loop.close)
    else:
        opened.make(needed)
        values, close = opened.values, opened.close
    try:
        yield handler.with_values(values)
    finally:
        problem = close()
    if problem is not None:
        raise problem


def _run_on(runner: asyncio.Runner, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
    return runner.run(function())


def _attempt_maker(
    handler: Handler, adapter: RecordAdapter, call: Callable[..., Any] | None, runner: asyncio.Runner
) -> Callable[[Record, int], Outcome]:
    """Return a function that makes one attempt on this thread, so that a debugger can take it over."""
    signature = handler.signature  # of the user's function, also where another one calls it
    if call is not None:
        if signature.is_async:
            raise ConfigError(
                f"--step cannot step into {handler.name}, which is async.",
                hint="Put breakpoint() into the function, and leave out --step.",
            )
        function, handler = handler.function, replace(handler)
        handler.__dict__.update(function=partial(call, function), signature=signature)
    if handler.batch is not None and signature.is_async:
        batch_async = batch_attempts_async(handler, adapter)
        return lambda record, number: runner.run(_awaited(batch_async([record], [number])))[0]
    if handler.batch is not None:
        batch = batch_attempts(handler, adapter)
        return lambda record, number: batch([record], [number])[0]
    if signature.is_async:
        single = attempts_async(handler, adapter)
        return lambda record, number: runner.run(_awaited(single(record, number)))
    return attempts(handler, adapter)


def _copy(record: Record, attempt: int) -> Record:
    where = record.topic, record.partition, record.offset
    return Record(*where, record.key, record.value, record.headers, record.timestamp_ms, attempt)


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


def _what_follows(
    handler: Handler, record: Record, outcome: Outcome, number: int, *, acked: bool
) -> tuple[str, tuple[ProducerRecord, ...], bool]:
    """Return what the engine would do after this outcome, what it would write, and whether it attempts again."""
    match outcome:
        case Failed():
            return _after_failure(handler, record, outcome, number)
        case Held():
            return ("finished by record.ack()" if acked else "unfinished until record.ack() is called"), (), False
        case Done(outputs):
            return "finished", outputs, False
        case Delayed(seconds=seconds):
            return f"no attempt is counted: handled again in {seconds:g} s", (), False
        case _:
            return "finished without an output", (), False


def _after_failure(
    handler: Handler, record: Record, failure: Failed, number: int
) -> tuple[str, tuple[ProducerRecord, ...], bool]:
    decision = decide(
        failure,
        attempt=number,
        has_dead_letter=handler.dead_letter is not None,
        random=lambda: 0.5,  # the middle: no jitter
        retry_topics=sorted({topic.seconds for topic in handler.delayed.values()}),
    )
    match decision:
        case TryAgain(delay) if failure.wait is not None:
            return f"no attempt is counted: tries again every {delay:.1f} s until it is available", (), False
        case TryAgain(delay):
            return f"next attempt after {delay:g} s", (), True
        case Postpone(delay):
            return f"next attempt after {delay:g} s in a retry topic", (), True
        case ToDeadLetter():
            topic, now = handler.dead_letter or "", time.time()
            letter = dead_letter(record, failure, topic=topic, group=handler.group, attempts=number, now=now)
            return f"dead letter to {topic}", (letter,), False
        case Halt():
            return "the app stops", (), False
