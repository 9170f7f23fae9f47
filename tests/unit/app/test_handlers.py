"""Declarations of handlers: valid ones, and those that are refused before the first record."""

import asyncio
import threading
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any

import pytest

from penstock import NO_RETRY, App, Breaker, Record, Reject, Retry, Skip
from penstock.app import attempts, attempts_async, batch_attempts, breaker_error, end_task, halt_error
from penstock.core.failures.breaker import Circuit
from penstock.core.failures.outcome import DONE, Done, Failed, Outcome, ProducerRecord, Skipped
from penstock.errors import ConfigError


@dataclass
class Order:
    id: int


GOOD = Record("orders", 0, 5, b"k", b'{"id":7}')


def attempt(function: Any, record: Record = GOOD, **options: Any) -> Outcome:
    app = App("shop")
    app.consume("orders", **options)(function)
    return attempts(app.handlers[0])(record, 1)


def test_a_handler_stays_the_plain_function_it_is() -> None:
    app = App("shop")

    def double(value: int) -> int:
        return value * 2

    assert app.consume("numbers", to="doubled")(double) is double
    assert double(4) == 8


def test_the_app_s_name_is_the_group_unless_another_is_named() -> None:
    app = App("shop")

    @app.consume("a")
    def one(value: bytes) -> None: ...

    @app.consume("a", "b", group="other", commit_every="100ms", retry=Retry(attempts=1))
    def two(value: bytes) -> None: ...

    assert [(h.name, h.group, h.topics) for h in app.handlers] == [
        ("one", "shop", ("a",)),
        ("two", "other", ("a", "b")),
    ]
    assert app.handlers[1].commit_every == 0.1


def test_every_allowed_form_is_called_with_what_it_asks_for() -> None:
    seen: list[Any] = []
    assert attempt(lambda value: seen.append(value) or None) == DONE  # type: ignore[func-returns-value]

    def typed(order: Order) -> None:
        seen.append(order)

    def both(order: Order, record: Record) -> None:
        seen.append((order, record.offset))

    def by_name(order: Order, record) -> None:  # type: ignore[no-untyped-def] # noqa: ANN001
        seen.append(record.offset)

    def record_only(record: Record) -> None:
        seen.append(record.value)

    def with_default(order: Order, rate: int = 3) -> None:
        seen.append(rate)

    for function in (typed, both, by_name, record_only, with_default):
        assert attempt(function) == DONE
    assert seen == [b'{"id":7}', Order(7), (Order(7), 5), 5, b'{"id":7}', 3]


def no_parameters() -> None: ...
def three(a: bytes, records: bytes, value: bytes) -> None: ...
def two_values(values: bytes, value: bytes) -> None: ...
def wrong_order(record: Record, value: bytes) -> None: ...
def two_records(one: Record, record: Record) -> None: ...
def keyword_only(value: bytes, *, rate: int) -> None: ...
def no_decoder(value: threading.Event) -> None: ...
def unknown_hint(value: "Missing") -> None: ...  # type: ignore[name-defined] # noqa: F821
@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (no_parameters, "takes (nothing)"),
        (three, "takes (a, records, value)"),
        (two_values, "takes (values, value)"),
        (wrong_order, "takes (record, value)"),
        (two_records, "takes (one, record)"),
        (keyword_only, "requires the keyword argument rate"),
        (no_decoder, "No decoder fits"),
        (unknown_hint, "cannot be resolved"),
        (Order, "is not a function"),
        ("text", "is not a function"),
    ],
)
def test_an_impossible_signature_is_refused_with_the_forms_that_work(function: Any, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        App("shop").consume("orders", to="out")(function)
    assert problem in caught.value.problem
    assert caught.value.hint


def nothing(value: bytes) -> None: ...
def something(value: bytes) -> bytes:
    return value


@pytest.mark.parametrize(
    ("function", "topics", "options", "problem"),
    [
        (nothing, [], {}, "it consumes no topic"),
        (nothing, ["or ders"], {}, "'or ders' is not a topic name"),
        (nothing, ["x" * 250], {}, "is not a topic name"),
        (nothing, [".."], {}, "is not a topic name"),
        (nothing, ["a"], {"dead_letter": "a"}, "dead_letter='a' is also its source"),
        (something, ["a"], {"to": "a"}, "to='a' is also its source"),
        (something, ["a"], {"to": "b", "dead_letter": "b"}, "to and dead_letter are both 'b'"),
        (something, ["a"], {}, "has no output topic"),
        (nothing, ["a"], {"concurrency": 0}, "concurrency=0"),
        (nothing, ["a"], {"max_in_flight": True}, "max_in_flight=True"),
        (nothing, ["a"], {"max_in_flight": 1}, "max_in_flight=1"),
        (nothing, ["a"], {"max_in_flight_bytes": 0}, "max_in_flight_bytes=0"),
        (nothing, ["a"], {"max_in_flight_bytes": "64MB"}, "max_in_flight_bytes='64MB'"),
        (nothing, ["a"], {"start": "middle"}, "start='middle'"),
        (nothing, ["a"], {"order": "random"}, "order='random'"),
        (nothing, ["a"], {"delivery": "twice"}, "delivery='twice'"),
        (nothing, ["a"], {"delivery": "twice"}, 'Use "at-least-once", "at-most-once" or "exactly-once"'),
        (
            nothing,
            ["a"],
            {"delivery": "exactly-once", "settings": {"isolation.level": "read_uncommitted"}},
            "isolation.level=read_uncommitted does not wait for",
        ),
        (nothing, ["a"], {"mode": "queue"}, "mode='queue'"),
        (nothing, ["a"], {"mode": "share", "order": "key"}, "a share group keeps no order"),
        (nothing, ["a"], {"mode": "share", "order": "none"}, "Name a topic for such records: dead_letter"),
        (
            nothing,
            ["a"],
            {"mode": "share", "order": "none", "dead_letter": "b", "static_id": "c"},
            "static_id, which a share group does not support",
        ),
        (nothing, ["a"], {"commit_every": "often"}, "commit_every='often'"),
        (nothing, ["a"], {"drain_timeout": -1}, "drain_timeout=-1"),
        (nothing, ["a"], {"retry": 3}, "Handler nothing: retry=3 is not a Retry"),
        (nothing, ["a"], {"retry": {}}, "lists no exception class"),
        (nothing, ["a"], {"retry": {Reject: Retry()}}, "retry lists Reject, which is never retried"),
        (nothing, ["a"], {"retry": {Skip: Retry()}}, "retry lists Skip, which is never retried"),
        (nothing, ["a"], {"retry_topics": "1m"}, "retry_topics='1m' is not a list"),
        (nothing, ["a"], {"retry_topics": ["2m", "1m"]}, "is not a list of ascending durations"),
        (nothing, ["a"], {"retry_topics": ["1m"], "start": "latest"}, 'use start="earliest"'),
        (nothing, ["a"], {"retry_topics": ["1m"], "dead_letter": "a.retry.1m"}, "is also its source"),
        (nothing, ["x" * 241], {"retry_topics": ["1m"]}, "is not a topic name"),
        (nothing, ["a"], {"breaker": 0.9, "dead_letter": "b"}, "breaker=0.9 is not a Breaker"),
        (nothing, ["a"], {"breaker": Breaker()}, "breaker= counts dead letters"),
    ],
)
def test_options_that_cannot_work_are_refused(
    function: Any, topics: list[str], options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        App("shop").consume(*topics, **options)(function)
    assert problem in str(caught.value)


def test_two_handlers_cannot_share_a_topic_in_one_group() -> None:
    app = App("shop")
    app.consume("a", "b")(nothing)
    with pytest.raises(ConfigError, match="both consume 'b'"):
        app.consume("b", "c")(nothing)


def test_a_retry_topic_cannot_be_the_source_of_another_handler() -> None:
    app = App("shop")
    app.consume("a", retry_topics=["1m", "10m"])(nothing)
    assert app.handlers[0].consumed_topics == ("a", "a.retry.1m", "a.retry.10m")
    with pytest.raises(ConfigError, match=r"both consume 'a\.retry\.1m'"):
        app.consume("a.retry.1m")(nothing)


@pytest.mark.parametrize(
    ("options", "order"),
    [
        ({}, "partition"),
        ({"concurrency": 1}, "partition"),
        ({"concurrency": 2}, "key"),
        ({"concurrency": 2, "order": "partition"}, "partition"),
        ({"workers": "process"}, "key"),
        ({"workers": "process", "concurrency": 1}, "partition"),
        ({"scale": "cpu"}, "key"),
        ({"scale": "cpu", "concurrency": 1}, "key"),
        ({"mode": "share", "dead_letter": "dlq"}, "none"),
    ],
)
def test_who_asks_for_parallel_work_gets_an_order_that_allows_it(options: dict[str, Any], order: str) -> None:
    app = App("shop")
    app.consume("orders", **options)(nothing)
    assert app.handlers[0].order == order


def test_an_app_needs_a_name() -> None:
    for name in ("", "  ", None):
        with pytest.raises(ConfigError, match="has no name"):
            App(name)  # type: ignore[arg-type]


def test_a_returned_value_goes_out_under_the_record_s_key() -> None:
    assert attempt(lambda _: {"ok": True}, to="out") == Done((ProducerRecord("out", b"k", b'{"ok":true}'),))


def test_outcomes_follow_from_what_the_handler_does() -> None:
    def raising(error: BaseException) -> Outcome:
        def handler(value: bytes) -> None:
            raise error

        return attempt(handler)

    assert raising(Skip("old")) == Skipped("old")
    assert raising(Reject("bad")) == Failed("Reject", "bad", final=True)
    assert raising(OSError("away")) == Failed("OSError", "away")
    assert raising(SystemExit(3)) == Failed("SystemExit", "3")


def test_the_type_of_an_error_chooses_its_retry_in_every_way_of_attempting() -> None:
    policy = {ConnectionError: Retry(attempts=7), ValueError: NO_RETRY}

    def handler(value: bytes) -> None:
        raise ConnectionResetError("away")

    async def async_handler(value: bytes) -> None:
        raise ConnectionResetError("away")

    def batched(values: list[bytes]) -> Any:
        return [ConnectionResetError("away") for _ in values]

    app = App("shop")
    for group, function in (("a", handler), ("b", async_handler), ("c", batched)):
        app.consume("orders", group=group, retry=policy, batch=2 if function is batched else None)(function)
    expected = Failed("ConnectionResetError", "away", retry=Retry(attempts=7))
    plain, running, batch = app.handlers
    assert attempts(plain)(GOOD, 1) == expected
    assert asyncio.run(_await(attempts_async(running)(GOOD, 1))) == expected
    assert batch_attempts(batch)([GOOD, GOOD], [1, 1]) == [expected, expected]


async def _await(outcome: Awaitable[Outcome]) -> Outcome:
    return await outcome


def test_a_record_that_cannot_be_decoded_is_a_failed_record() -> None:
    def handler(order: Order) -> None:
        pytest.fail("it must not be called")

    outcome = attempt(handler, Record("orders", 0, 1, None, b"{"))
    assert outcome == Failed("Undecodable", "Input data was truncated", final=True)


def test_an_output_without_a_topic_or_an_encoding_fails_for_good() -> None:
    for outcome in (attempt(lambda _: 5), attempt(lambda _: object(), to="out")):
        assert isinstance(outcome, Failed)
        assert outcome.final


def test_async_handlers_have_the_same_outcomes() -> None:
    asyncio.run(_check_async_outcomes())


async def _check_async_outcomes() -> None:
    app = App("shop")

    @app.consume("orders", to="out")
    async def handler(order: Order) -> dict[str, int] | None:
        if order.id == 0:
            raise Skip
        if order.id < 0:
            raise Reject("negative")
        return {"id": order.id} if order.id < 100 else None

    call = attempts_async(app.handlers[0])

    async def of(value: bytes) -> Outcome:
        return await call(Record("orders", 0, 0, b"k", value), 1)

    assert await of(b'{"id":7}') == Done((ProducerRecord("out", b"k", b'{"id":7}'),))
    assert await of(b'{"id":0}') == Skipped()
    assert await of(b'{"id":-1}') == Failed("Reject", "negative", final=True)
    assert await of(b'{"id":100}') == DONE
    assert (await of(b"{")) == Failed("Undecodable", "Input data was truncated", final=True)


def test_a_variant_is_the_same_app_with_other_names() -> None:
    app = App("shop", brokers="b:1", settings={"client.id": "x"})
    app.consume("orders", dead_letter="dlq")(nothing)
    twin = app.variant("twin", lambda handler: {"group": "twin", "dead_letter": f"{handler.dead_letter}-2"})
    assert (twin.name, twin.brokers) == ("twin", "b:1")
    assert [(h.function, h.group, h.dead_letter) for h in twin.handlers] == [(nothing, "twin", "dlq-2")]
    assert app.handlers[0].group == "shop"


def test_the_error_that_halts_an_app_names_record_handler_and_reason() -> None:
    error = halt_error("ship", GOOD, Failed("ValueError", "no address"))
    assert "ship failed on orders[0]@5, attempt 1: ValueError: no address" in str(error)
    assert "dead_letter" in error.hint
    assert error.exit_code == 5


def test_a_cancelled_child_of_an_async_handler_is_a_failure_and_its_own_cancellation_is_not() -> None:
    app = App("shop")

    @app.consume("orders")
    async def handle(value: bytes) -> None:
        if value == b"child":
            child = asyncio.create_task(asyncio.sleep(60))
            child.cancel()
            await child
        await asyncio.sleep(60)

    attempt = attempts_async(app.handlers[0])

    async def try_both() -> Outcome:
        outcome = await attempt(Record("orders", 0, 0, None, b"child"), 1)
        task = asyncio.ensure_future(attempt(Record("orders", 0, 1, None, b""), 1))
        await asyncio.sleep(0)
        end_task(task)
        with pytest.raises(asyncio.CancelledError):
            await task
        return outcome

    outcome = asyncio.run(try_both())
    assert isinstance(outcome, Failed)
    assert outcome.error_type.endswith("CancelledError")


def test_commits_need_time_between_them() -> None:
    with pytest.raises(ConfigError, match="is not positive"):
        App("shop").consume("orders", commit_every=0)(len)


def test_the_error_of_a_breaker_says_how_many_and_what_to_do() -> None:
    circuit = Circuit(Breaker(share=1, window=2))
    assert [circuit.lets_through() for _ in range(3)] == [True, True, False]
    error = breaker_error("ship", GOOD, Failed("ValueError", "no address"), circuit)
    assert "ship sent 2 of the last 2 records to the dead letters" in str(error)
    assert "orders[0]@5: ValueError: no address" in str(error)
    assert "breaker" in error.hint
    assert error.exit_code == 5


def test_a_misspelt_option_is_an_error_that_names_the_right_one() -> None:
    app = App("shop")
    with pytest.raises(ConfigError, match=r"@app.consume has no option 'concurency'. Did you mean 'concurrency'\?"):
        app.consume("orders", concurency=5)  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match=r"@app.pipeline has no option 'grup'. Did you mean 'group'\?"):
        app.pipeline("orders", to="out", grup="g")  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match=r"App has no option 'broker'. Did you mean 'brokers'\?"):
        App("shop", broker="localhost:9092")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"has no option 'xyz'. There are: assignor, batch"):
        app.consume("orders", xyz=5)  # type: ignore[call-arg]
