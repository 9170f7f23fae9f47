"""What a middleware and a resource cost for each record: python benchmarks/middleware_cost.py.

First single attempts in alternation, in one process, against the least that any such middleware costs: a call of the
user's own function and a record. Then the parts of it, each added to the ones before. Then whole runs of a handler that
does nothing, in alternation.
"""

import threading
import time
from collections.abc import Callable
from statistics import median
from typing import Any
from uuid import uuid4

import typer
from bench import broker, fill
from confluent_kafka import Message

from penstock import App
from penstock import engine as local
from penstock.app import Handler
from penstock.app.attempts.attempt import attempts
from penstock.app.resources.middleware import layer
from penstock.core.reports.events import Assigned, Event, Stopping
from penstock.kafka import MESSAGES, Cluster

_ATTEMPTS = 20_000
_ALTERNATIONS = 25


def make_app(topic: str, *, with_both: bool) -> App:
    app = App(uuid4().hex)
    if not with_both:

        @app.consume(topic, order="key", concurrency=8)
        def nothing(value: bytes) -> None: ...

        return app

    @app.resource
    def database() -> object:
        return object()

    @app.around
    def pass_on(record: Any, call: Callable[[], Any]) -> Any:
        return call()

    @app.consume(topic, order="key", concurrency=8)
    def nothing_with_a_resource(value: bytes, database: object) -> None: ...

    return app


def nanoseconds(function: Callable[[], object]) -> float:
    began = time.thread_time_ns()
    for _ in range(_ATTEMPTS):
        function()
    return (time.thread_time_ns() - began) / _ATTEMPTS


def compare_attempts() -> None:
    message: Any = Message(topic="t", partition=0, offset=5, key=b"k", value=b"v")

    def attempt_of(handler: Handler) -> Callable[[], object]:
        attempt = attempts(handler, MESSAGES)
        return lambda: attempt(message, 1)

    (plain,), (both,) = (make_app("t", with_both=each).wired_handlers() for each in (False, True))

    def pass_on(record: Any, call: Callable[[], Any]) -> Any:
        return call()

    parts = parts_of_an_attempt(message, pass_on)
    programs: dict[str, Callable[[], object]] = {
        "plain": attempt_of(plain),
        "with both": attempt_of(both.with_values({"database": object()})),
        "an empty function": lambda: None,
        "the least": lambda: pass_on(MESSAGES.to_record(message, 1), _nothing),
        **parts,
    }
    seen: dict[str, list[float]] = {what: [] for what in programs}
    for _ in range(_ALTERNATIONS):
        for what, program in programs.items():
            seen[what].append(nanoseconds(program))
    typical = {what: median(found) for what, found in seen.items()}
    least = typical["the least"] - typical["an empty function"]
    print(
        f"An attempt takes {typical['plain']:.0f} ns, with a middleware and a resource "
        f"{typical['with both'] - typical['plain']:.0f} ns more; the least is {least:.0f} ns."
    )
    shown, before = [], 0.0
    for what in parts:
        shown.append(f"{what} {typical[what] - before:.0f}")
        before = typical[what]
    rest = typical["with both"] - typical["plain"] - (before - typical["the handler"])
    print(f"The parts in ns: {', '.join(shown)}, the rest of the layer and its check {rest:.0f}.")


def parts_of_an_attempt(message: Any, pass_on: Callable[..., Any]) -> dict[str, Callable[[], object]]:
    """Programs that each do one thing more than the one before."""
    to_record = MESSAGES.to_record
    # A layer returns what its middleware returns: here, its call.
    around = layer(lambda _record, call: call, "", _nothing_with, ("value",), 1, drops_record=True)
    call_class = type(around(b"v", to_record(message, 1)))

    def handler() -> None:
        _nothing_with(b"v")

    def record() -> None:
        to_record(message, 1)
        _nothing_with(b"v")

    def function() -> None:
        pass_on(to_record(message, 1), _nothing)

    def call() -> None:
        made = call_class()
        made._given, made.returned = b"v", None
        pass_on(to_record(message, 1), _nothing)

    def calling() -> None:
        made = call_class()
        made._given, made.returned = b"v", None
        pass_on(to_record(message, 1), made)

    return {
        "the handler": handler, "the record": record, "the user's function": function,
        "the call object": call, "calling it": calling,
    }  # fmt: skip


def _nothing() -> None: ...


def _nothing_with(value: object) -> None: ...


def compare_runs(brokers: str, records: int, rounds: int) -> None:
    topic = f"bench-{uuid4().hex[:8]}"
    fill(brokers, topic, records, 4)
    seen: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for _ in range(rounds):
        for with_both, found in seen.items():
            found.append(run(make_app(topic, with_both=with_both), brokers))
    Cluster(brokers).delete_topics([topic])
    for what, number in (("", 0), (" of processor time of all threads", 1)):
        plain, both = (median(each[number] for each in seen[with_both]) for with_both in (False, True))
        print(
            f"{records:,} records: {plain:.2f} s{what}, with a middleware and a resource {both:.2f} s "
            f"({both / plain:.2f} x)."
        )


def run(app: App, brokers: str) -> tuple[float, float]:
    moments: list[tuple[float, float]] = []

    def on_event(event: Event) -> None:
        if isinstance(event, Stopping) or (isinstance(event, Assigned) and not moments):
            moments.append((time.perf_counter(), time.process_time()))

    local.run(app, brokers=brokers, emit=on_event, stop=threading.Event(), until_caught_up=True)
    (began, began_cpu), (ended, ended_cpu) = moments[0], moments[-1]
    return ended - began, ended_cpu - began_cpu


def main(records: int = 1_000_000, rounds: int = 5, brokers: str | None = None) -> None:
    compare_attempts()
    with broker(brokers) as address:
        compare_runs(address, records, rounds)


if __name__ == "__main__":
    typer.run(main)
