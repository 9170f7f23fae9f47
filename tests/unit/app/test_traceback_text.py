"""Errors of handlers as text: which frames they show and leave out, and their size."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from penstock import App, Record, Reject
from penstock.app import Handler, attempts, attempts_async, batch_attempts, batch_attempts_async
from penstock.app.attempts.traceback_text import described
from penstock.core.failures.dead_letter_headers import MAX_TRACEBACK_BYTES
from penstock.core.failures.outcome import DONE, Failed, Outcome

RECORD = Record("orders", 0, 7, b"k", b"1", (), 0)


def charge(depth: int = 0, message: str = "no such order") -> None:
    if depth:
        charge(depth - 1, message)
    raise ValueError(message)


def caught(function: Callable[[], Any]) -> BaseException:
    with pytest.raises(BaseException) as found:  # noqa: PT011 - any error will do here
        function()
    return found.value


def handler_of(function: Any, **options: Any) -> Handler:
    app = App("shop")
    app.consume("orders", dead_letter="dlq", **options)(function)
    return app.handlers[0]


def failure_of(outcome: Outcome) -> Failed:
    assert isinstance(outcome, Failed)
    return outcome


def attempted(function: Any) -> Failed:
    return failure_of(attempts(handler_of(function))(RECORD, 1))


def test_a_traceback_shows_the_users_frames_and_lines_and_none_of_penstocks() -> None:
    def ship(record: Record) -> None:
        charge()

    text = attempted(ship).traceback
    lines = text.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert [line.rpartition(" in ")[2] for line in lines if line.startswith("  File")] == ["ship", "charge"]
    assert "    raise ValueError(message)" in lines
    assert lines[-1] == "ValueError: no such order"
    assert "penstock/app" not in text


def test_a_cause_and_a_context_come_before_the_error_that_they_led_to() -> None:
    orders: dict[str, int] = {}

    def ship(record: Record) -> None:
        try:
            try:
                charge()
            except ValueError:
                orders["missing"]
        except KeyError as error:
            raise RuntimeError("cannot ship") from error

    text = attempted(ship).traceback
    parts = [
        "ValueError: no such order",
        "During handling of the above exception, another exception occurred:",
        "KeyError: 'missing'",
        "The above exception was the direct cause of the following exception:",
        "RuntimeError: cannot ship",
    ]
    assert [text.index(part) for part in parts] == sorted(text.index(part) for part in parts)


def test_a_cause_hidden_with_from_none_stays_hidden() -> None:
    def ship(record: Record) -> None:
        try:
            charge()
        except ValueError:
            raise RuntimeError("cannot ship") from None

    assert "no such order" not in attempted(ship).traceback


def test_a_group_is_unpacked_in_the_message_and_in_the_traceback() -> None:
    async def fail(error: Exception) -> None:
        raise error

    async def ship(record: Record) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail(ValueError("no such order")))
            group.create_task(fail(TimeoutError()))

    failure = failure_of(asyncio.run(_awaited(attempts_async(handler_of(ship))(RECORD, 1))))
    assert failure.error_type == "ExceptionGroup"
    assert failure.message.endswith("(2 sub-exceptions): ValueError: no such order; TimeoutError")
    assert "Error 1 of 2 in this group:" in failure.traceback
    assert failure.traceback.endswith("TimeoutError")
    assert failure.traceback.count("    raise error") == 2


def test_the_message_of_a_large_group_names_a_few_of_its_members() -> None:
    message, text = described(ExceptionGroup("all", [ExceptionGroup("some", [ValueError(str(n)) for n in range(50)])]))
    assert message.endswith("ValueError: 3; ValueError: 4; and 45 more")
    assert text == ""  # none of its errors was raised


def test_an_error_without_a_message_says_where_it_was_raised() -> None:
    async def ship(record: Record) -> None:
        async with asyncio.timeout(0):
            await asyncio.sleep(60)

    failure = failure_of(asyncio.run(_awaited(attempts_async(handler_of(ship))(RECORD, 1))))
    assert failure.error_type == "TimeoutError"
    assert failure.message.startswith("(no message) raised in ship at test_traceback_text.py:")


def test_a_deep_stack_keeps_the_frames_nearest_to_the_error() -> None:
    _, text = described(caught(lambda: charge(500)))
    lines = text.splitlines()
    assert lines[1] == "  (493 more frames further out)"
    assert lines[-2] == "    raise ValueError(message)"


@pytest.mark.parametrize("letter", ["x", "ü", "\U0001f600", "\ud800"])
def test_a_traceback_never_takes_more_bytes_than_it_may(letter: str) -> None:
    def nested(depth: int) -> None:
        try:
            if depth:
                nested(depth - 1)
            charge(30, letter * 10_000)
        except Exception as error:
            charged = RuntimeError(letter * 5_000)
            charged.add_note(letter * 5_000)
            raise charged from error

    message, text = described(caught(lambda: nested(20)))
    assert len(text.encode()) <= MAX_TRACEBACK_BYTES
    assert len(message) == 5_000
    assert text.count("RuntimeError: ") > 1


def test_an_error_that_is_its_own_cause_is_shown_once() -> None:
    error = caught(charge)
    error.__cause__ = error
    assert described(error)[1].count("ValueError: no such order") == 1


def test_two_messages_from_one_line_are_not_shown_as_the_first() -> None:
    first, second = (described(caught(partial(charge, 0, text)))[1] for text in ("one", "two"))
    assert first.endswith("ValueError: one")
    assert second.endswith("ValueError: two")


def test_an_error_raised_through_two_callers_names_each_of_them() -> None:
    def by_one_way() -> None:
        charge()

    def by_another() -> None:
        charge()

    assert "in by_one_way" in described(caught(by_one_way))[1]
    assert "in by_another" in described(caught(by_another))[1]


def test_an_undecodable_record_has_a_reason_and_no_traceback_of_libraries() -> None:
    def ship(order: int) -> None: ...

    failure = failure_of(attempts(handler_of(ship))(Record("orders", 0, 7, b"k", b"{", (), 0), 1))
    assert failure.error_type == "Undecodable"
    assert failure.traceback == ""


def test_a_users_own_decoder_is_shown() -> None:
    def decode(raw: bytes) -> int:
        raise LookupError("no codec")

    def ship(order: int) -> None: ...

    failure = failure_of(attempts(handler_of(ship, value=decode))(RECORD, 1))
    assert "in decode" in failure.traceback
    assert "LookupError: no codec" in failure.traceback


def test_an_error_whose_message_cannot_be_printed_has_a_traceback() -> None:
    class OddError(Exception):
        def __str__(self) -> str:
            raise TypeError("no")

    def ship(record: Record) -> None:
        raise OddError

    failure = attempted(ship)
    assert "could not be printed: TypeError" in failure.message
    assert "in ship" in failure.traceback


def test_in_a_batch_each_record_has_its_own_error_and_not_that_of_the_batch() -> None:
    def ship(orders: list[Record]) -> None:
        for order in orders:
            if order.value == b"bad":
                raise Reject("a bad one")

    good, bad = RECORD, Record("orders", 0, 8, b"k", b"bad", (), 0)
    outcomes = batch_attempts(handler_of(ship, batch=10))([good, bad], [1, 1])
    assert outcomes[0] is DONE
    text = failure_of(outcomes[1]).traceback
    assert text.count("Reject: a bad one") == 1
    assert "in ship" in text


def test_in_an_async_batch_too() -> None:
    async def ship(orders: list[Record]) -> None:
        for order in orders:
            if order.value == b"bad":
                raise Reject("a bad one")

    good, bad = RECORD, Record("orders", 0, 8, b"k", b"bad", (), 0)
    outcomes = asyncio.run(_awaited(batch_attempts_async(handler_of(ship, batch=10))([good, bad], [1, 1])))
    assert failure_of(outcomes[1]).traceback.count("Reject: a bad one") == 1


async def _awaited(given: Any) -> Any:
    return await given
