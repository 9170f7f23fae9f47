"""Outputs: what a handler returns or yields, and where each of it goes."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from penstock import App, HandlerBug, Out, Record, Retry
from penstock.app import Handler, attempts, attempts_async, batch_attempts
from penstock.core.failures.outcome import DONE, Done, Failed, Outcome, ProducerRecord
from penstock.errors import ConfigError

HEADERS = (
    ("tenant", b"7"),
    ("trace", b"abc"),
    ("tenant", b"8"),
    ("penstock-retry-attempt", b"2"),
    ("__value_schema_id", b"x"),
)
RECORD = Record("orders", 0, 0, b"k", b"1", HEADERS)


def declared(function: Callable[..., Any], **options: Any) -> Handler:
    app = App("shop")
    app.consume("orders", **options)(function)
    (handler,) = app.handlers
    return handler


def attempt(function: Callable[..., Any], **options: Any) -> Outcome:
    return attempts(declared(function, **options))(RECORD, 1)


def attempt_async(function: Callable[..., Any], **options: Any) -> Outcome:
    async def run() -> Outcome:
        return await attempts_async(declared(function, **options))(RECORD, 1)

    return asyncio.run(run())


def written(function: Callable[..., Any], **options: Any) -> list[tuple[str, bytes | None, bytes | None]]:
    outcome = attempt(function, **options)
    assert isinstance(outcome, Done), outcome
    return [(out.topic, out.key, out.value) for out in outcome.outputs]


def bug(outcome: Outcome) -> str:
    assert isinstance(outcome, Failed)
    assert (outcome.error_type, outcome.halts) == ("HandlerBug", True)
    return outcome.message


# What is an output.


def test_an_out_names_its_topic_key_partition_headers_and_timestamp() -> None:
    def handle(_: bytes) -> Out:
        return Out(
            {"id": 1},
            to="receipts",
            key="ann",
            partition=3,
            headers={"type": "receipt", "raw": b"\xff"},
            timestamp=datetime(2030, 1, 31, tzinfo=UTC),
        )

    assert attempt(handle) == Done((
        ProducerRecord(
            "receipts", b"ann", b'{"id":1}', (("type", b"receipt"), ("raw", b"\xff")), 3, 1_896_048_000_000
        ),
    ))  # fmt: skip


def test_an_out_is_like_a_plain_value_where_it_says_nothing() -> None:
    assert attempt(lambda _: Out("x"), to="out") == attempt(lambda _: "x", to="out")


@pytest.mark.parametrize(
    ("key", "raw"),
    [
        ("é", "é".encode()),
        (b"\x00", b"\x00"),
        (42, b"42"),
        (UUID(int=1), b"00000000-0000-0000-0000-000000000001"),
        (None, None),
    ],
)
def test_a_key_is_text_bytes_a_number_a_uuid_or_none(key: Any, raw: bytes | None) -> None:
    assert written(lambda _: Out("x", key=key), to="out") == [("out", raw, b"x")]


def test_an_out_without_a_value_is_a_tombstone() -> None:
    assert written(lambda _: Out(None), to="out") == [("out", b"k", None)]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"to": 5}, r"Out\(to=5\) does not work. Use the name of a topic"),
        ({"key": 1.5}, r"Out\(key=1.5\) does not work. Use text, bytes"),
        ({"key": True}, r"Out\(key=True\)"),
        ({"partition": -1}, r"Out\(partition=-1\) does not work. Use a whole number of at least 0"),
        ({"partition": "1"}, r"Out\(partition='1'\)"),
        ({"headers": [("a", "b")]}, r"Out\(headers=.*Use a dict"),
        ({"headers": {"a": 5}}, r"Out\(headers=\{'a': 5\}\) does not work. Names are text"),
        ({"headers": {5: "a"}}, r"Out\(headers=\{5: 'a'\}\)"),
        ({"timestamp": 5}, r"Out\(timestamp=5\) does not work. Use a datetime with a time zone"),
        ({"timestamp": datetime(2030, 1, 1)}, "with a time zone"),  # noqa: DTZ001 - the point
        ({"timestamp": datetime(1970, 1, 1, tzinfo=UTC)}, "Kafka counts from 1970"),
    ],
)
def test_an_out_with_a_wrong_part_is_a_bug_of_the_handler_that_says_what_to_use(
    arguments: Mapping[str, Any], problem: str
) -> None:
    with pytest.raises(HandlerBug, match=problem):
        Out("x", **arguments)
    assert "Out(" in bug(attempt(lambda _: Out("x", **arguments), to="out"))


def test_outs_can_be_compared_and_shown_so_that_a_handler_is_easy_to_test() -> None:
    assert Out("x", to="a") == Out("x", to="a") != Out("x", to="a", key=None)
    assert repr(Out("x")) == "Out('x')"
    assert repr(Out("x", to="a", key=None, partition=1)) == "Out('x', to='a', partition=1, key=None)"


# Several outputs.


def test_a_handler_that_yields_has_an_output_for_each_value() -> None:
    def handle(value: int) -> Iterator[int | Out | None]:
        yield value
        yield None
        yield Out(value + 1, to="audit", key=None)
        yield Out(value + 2)

    assert written(handle, to=["out", "audit"]) == [("out", b"k", b"1"), ("audit", None, b"2"), ("out", b"k", b"3")]


def test_an_async_generator_too() -> None:
    async def handle(value: int) -> AsyncIterator[Out]:
        yield Out(value, to="out")
        await asyncio.sleep(0)
        yield Out(value, to="audit")

    outcome = attempt_async(handle)
    assert isinstance(outcome, Done)
    assert [out.topic for out in outcome.outputs] == ["out", "audit"]


def test_without_a_type_hint_too() -> None:
    def handle(value):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        yield value

    assert written(handle, to="out") == [("out", b"k", b"1")]


def test_a_handler_that_yields_nothing_is_done() -> None:
    def handle(_: bytes) -> Iterator[Out]:
        yield from ()

    assert attempt(handle) is DONE


def test_a_handler_that_raises_after_two_yields_has_no_output() -> None:
    def handle(_: bytes) -> Iterator[str]:
        yield "a"
        yield "b"
        raise OSError("away")

    assert attempt(handle, to="out") == Failed("OSError", "away")

    async def handle_async(_: bytes) -> AsyncIterator[str]:
        yield "a"
        yield "b"
        raise OSError("away")

    assert attempt_async(handle_async, to="out") == Failed("OSError", "away")


@pytest.mark.parametrize(
    "hint", [list[Out], list[Out] | None, tuple[Out, ...], Iterable[str | Out], list[dict[str, int] | Out]]
)
def test_a_list_is_several_outputs_if_the_return_hint_says_so(hint: Any) -> None:
    def handle(_: bytes) -> Any:
        return [Out("a"), Out("b")]

    handle.__annotations__["return"] = hint
    assert written(handle, to="out") == [("out", b"k", b"a"), ("out", b"k", b"b")]


@pytest.mark.parametrize("hint", [list[str], list, Any])
def test_any_other_list_is_one_json_array(hint: Any) -> None:
    def handle(_: bytes) -> Any:
        return ["a", "b"]

    handle.__annotations__["return"] = hint
    assert written(handle, to="out") == [("out", b"k", b'["a","b"]')]


def test_a_list_that_is_yielded_is_one_json_array() -> None:
    def handle(_: bytes) -> Iterator[list[str]]:
        yield ["a", "b"]

    assert written(handle, to="out") == [("out", b"k", b'["a","b"]')]


def test_a_list_of_outs_without_a_hint_is_a_bug_that_names_the_hint() -> None:
    message = bug(attempt(lambda _: [Out("a")], to="out"))
    assert "Annotate it with -> list[Out]" in message


def test_an_out_inside_of_a_value_is_a_bug() -> None:
    assert "cannot be encoded" in bug(attempt(lambda _: {"a": Out("x")}, to="out"))


def test_one_value_where_several_are_declared_is_one_output() -> None:
    def handle(_: bytes) -> list[Out] | dict[str, int]:
        return {"a": 1}

    assert written(handle, to="out") == [("out", b"k", b'{"a":1}')]


def test_a_batch_returns_a_list_of_outs_for_a_record() -> None:
    def handle(values: list[int]) -> list[int | list[Out] | Exception | None]:
        return [values[0], [Out("a"), Out("b", to="audit")], None, [], OSError("away")]

    app = App("shop")
    app.consume("numbers", batch=9, to=["out", "audit"])(handle)
    records = [Record("numbers", 0, n, b"k%d" % n, b"%d" % n) for n in range(5)]
    assert batch_attempts(app.handlers[0])(records, [1] * 5) == [
        Done((ProducerRecord("out", b"k0", b"0"),)),
        Done((ProducerRecord("out", b"k1", b"a"), ProducerRecord("audit", b"k1", b"b"))),
        DONE,
        DONE,
        Failed("OSError", "away"),
    ]


# Topics.


def test_an_out_may_name_any_topic_but_its_sources_and_its_dead_letters() -> None:
    assert written(lambda _: Out("x", to="anything")) == [("anything", b"k", b"x")]
    assert "it is also its source" in bug(attempt(lambda _: Out("x", to="orders")))
    assert "it is also its source" in bug(attempt(lambda _: Out("x", to="orders.retry.1m"), retry_topics=["1m"]))
    assert "it is its dead_letter topic" in bug(attempt(lambda _: Out("x", to="dlq"), dead_letter="dlq"))
    assert "Kafka takes up to 249 letters" in bug(attempt(lambda _: Out("x", to="no topic")))


def test_an_output_without_any_topic_is_a_bug() -> None:
    assert "no output topic is set with to=" in bug(attempt(lambda _: "x"))
    assert "an Out without a topic" in bug(attempt(lambda _: Out("x")))


def test_outputs_do_not_go_with_manual_acknowledgements_or_a_transaction_of_a_database() -> None:
    def manual(_: bytes, record: Record) -> Any:
        return Out("x", to="out")

    assert 'commit="manual" does not work' in bug(attempt(manual, commit="manual"))

    def several(_: bytes, record: Record) -> Iterator[Out]:
        yield Out("x", to="out")

    with pytest.raises(ConfigError, match='commit="manual" does not work with outputs'):
        declared(several, commit="manual")

    def in_database(_: bytes, tx: Any) -> Iterator[Out]:
        yield Out("x", to="out")

    with pytest.raises(ConfigError, match="it takes tx and has outputs"):
        declared(in_database, offsets="sqlite:///x.db")


def test_a_bug_in_retry_is_an_error_like_any_other() -> None:
    outcome = attempt(lambda _: Out("x", to="orders"), retry={HandlerBug: Retry()})
    assert isinstance(outcome, Failed)
    assert not outcome.halts


# Declarations.


def one(_: bytes) -> str:
    return ""


def several(_: bytes) -> Iterator[str]:
    yield ""


def mixed(_: bytes) -> Iterator[str | Out]:
    yield ""


def nothing(_: bytes) -> None: ...


def batch_generator(_: list[bytes]) -> Iterator[Out]:
    yield Out("x", to="out")


@pytest.mark.parametrize(
    ("function", "options", "problem"),
    [
        (several, {}, "it returns a value, but has no output topic"),
        (mixed, {}, "it returns a value, but has no output topic"),
        (batch_generator, {"batch": 5}, "yields, which a handler with batch= cannot. Return a list"),
        (one, {"to": []}, r"to=\(\) is empty"),
        (one, {"to": ["a", "a"]}, "lists a topic twice"),
        (one, {"to": ["a", "orders"]}, "to='orders' is also its source"),
        (one, {"to": ["a", "b"], "dead_letter": "b"}, "to and dead_letter are both 'b'"),
        (one, {"to": ["a", "no topic"]}, "'no topic' is not a topic name"),
        (one, {"to": ["a", 5]}, "5 is not a topic name"),
        (one, {"to": 5}, "5 is not a topic name"),
        (one, {"to": "out", "carry_headers": "tenant"}, "carry_headers='tenant' does not say which headers"),
        (one, {"to": "out", "carry_headers": []}, r"carry_headers=\(\) does not say which headers"),
        (one, {"to": "out", "carry_headers": [5]}, "does not say which headers"),
        (nothing, {"carry_headers": True}, "carry_headers= has no effect"),
        (nothing, {"to_value": str.encode}, "to_value= has no effect"),
    ],
)
def test_a_declaration_that_cannot_work_is_refused(
    function: Callable[..., Any], options: Mapping[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        declared(function, **options)


def test_a_list_with_one_topic_is_that_topic() -> None:
    assert declared(one, to=["out"]).to == "out"
    assert declared(one, to=["a", "b"]).output_topics == ("a", "b")


# Headers.


def headers_of(function: Callable[..., Any], **options: Any) -> tuple[tuple[str, bytes | None], ...]:
    outcome = attempt(function, to="out", **options)
    assert isinstance(outcome, Done)
    return outcome.outputs[0].headers


def test_headers_of_the_record_are_carried_on_if_asked_for() -> None:
    assert headers_of(lambda _: "x") == ()
    assert headers_of(lambda _: "x", carry_headers=["trace", "other"]) == (("trace", b"abc"),)


def test_all_of_them_without_those_that_are_about_the_record_itself() -> None:
    assert headers_of(lambda _: "x", carry_headers=True) == (("tenant", b"7"), ("trace", b"abc"), ("tenant", b"8"))


def test_the_headers_of_an_out_replace_carried_ones_of_the_same_name() -> None:
    out = Out("x", headers={"tenant": "9"})
    assert headers_of(lambda _: out, carry_headers=True) == (("trace", b"abc"), ("tenant", b"9"))


def test_the_header_of_the_encoder_is_there_too() -> None:
    def encode(value: str) -> bytes:
        return value.upper().encode()

    assert written(lambda _: Out("x"), to="out", to_value=encode) == [("out", b"k", b"X")]
