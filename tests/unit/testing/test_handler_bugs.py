"""Bugs in a handler stop the app on the bench; other errors are failures of the record."""

from typing import Any

import pytest

from penstock import NO_RETRY, App, HandlerBug, Record
from penstock.errors import HandlerError
from penstock.testing import Bench


def ack_in_vain(record: Record) -> None:
    record.ack()


def return_what_cannot_be_encoded(record: Record) -> object:
    return object()


def return_without_an_output_topic(record: Record) -> Any:
    return "lost"


def return_too_few(records: list[Record]) -> list[str]:
    return []


BUGS: list[tuple[Any, dict[str, Any], str]] = [
    (ack_in_vain, {}, "cannot be acknowledged"),
    (return_what_cannot_be_encoded, {"to": "out"}, "cannot be encoded"),
    (return_without_an_output_topic, {}, "no output topic is set"),
    (return_too_few, {"to": "out", "batch": 2}, "returned 0 results for 2 records"),
]


@pytest.mark.parametrize(("function", "options", "reason"), BUGS)
def test_a_bug_of_the_handler_stops_the_app_and_dead_letters_nothing(
    function: Any, options: dict[str, Any], reason: str
) -> None:
    app = App("shop")
    app.consume("orders", dead_letter="dlq", **options)(function)
    bench = Bench(app)
    bench.produce("orders", b"1")
    bench.produce("orders", b"2")
    with pytest.raises(HandlerError, match=rf"orders\[0\]@0, attempt 1: HandlerBug: .*{reason}") as stopped:
        bench.advance("1m")
    assert "retry={...}" in stopped.value.hint
    assert bench.dead_letters("dlq") == []
    assert bench.lag("orders") == 2


@pytest.mark.parametrize(("function", "options", "reason"), BUGS)
def test_a_bug_that_the_retry_policy_names_is_like_any_other_error(
    function: Any, options: dict[str, Any], reason: str
) -> None:
    app = App("shop")
    app.consume("orders", dead_letter="dlq", retry={HandlerBug: NO_RETRY}, **options)(function)
    bench = Bench(app)
    bench.produce("orders", b"1")
    bench.produce("orders", b"2")
    bench.advance("1m")
    assert [reason in letter.reason for letter in bench.dead_letters("dlq")] == [True, True]
    assert bench.lag("orders") == 0


def test_a_policy_for_all_exceptions_does_not_name_bugs() -> None:
    app = App("shop")
    app.consume("orders", dead_letter="dlq", retry={Exception: NO_RETRY})(ack_in_vain)
    bench = Bench(app)
    bench.produce("orders", b"1")
    with pytest.raises(HandlerError, match="HandlerBug"):
        bench.run_until_idle()
