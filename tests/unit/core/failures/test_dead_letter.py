"""The headers and the content of a dead letter."""

from hypothesis import given
from hypothesis import strategies as st

from penstock import Record
from penstock.core.failures.dead_letter import dead_letter, shortened
from penstock.core.failures.dead_letter_headers import (
    MAX_MESSAGE_BYTES,
    bounded,
    read_dead_letter_info,
    without_failure_headers,
)
from penstock.core.failures.outcome import Failed, ProducerRecord

RECORD = Record("orders", 3, 42, b"k", b"\xff\x00", (("trace", b"1"), ("trace", None)), 1_700_000_000_000)


def letter_of(record: Record, message: str = "boom", attempts: int = 2) -> ProducerRecord:
    return dead_letter(
        record, Failed("ValueError", message), topic="orders.dlq", group="shop", attempts=attempts, now=1_700_000_001.5
    )


def test_key_value_and_headers_are_untouched_and_the_reasons_follow() -> None:
    letter = letter_of(RECORD)
    assert (letter.topic, letter.key, letter.value) == ("orders.dlq", b"k", b"\xff\x00")
    assert letter.headers == (
        ("trace", b"1"),
        ("trace", None),
        ("penstock-dlq-topic", b"orders"),
        ("penstock-dlq-partition", b"3"),
        ("penstock-dlq-offset", b"42"),
        ("penstock-dlq-timestamp", b"1700000000000"),
        ("penstock-dlq-group", b"shop"),
        ("penstock-dlq-attempts", b"2"),
        ("penstock-dlq-error-type", b"ValueError"),
        ("penstock-dlq-error-message", b"boom"),
        ("penstock-dlq-failed-at", b"1700000001500"),
    )


def test_a_traceback_is_a_header_and_what_is_too_large_goes_without_it() -> None:
    failure = Failed("ValueError", "boom", traceback="Traceback\nValueError: boom")
    letter = dead_letter(RECORD, failure, topic="orders.dlq", group="shop", attempts=1, now=0.0)
    assert dict(letter.headers)["penstock-dlq-traceback"] == b"Traceback\nValueError: boom"
    assert read_dead_letter_info(letter.headers).traceback == "Traceback\nValueError: boom"
    assert "penstock-dlq-traceback" not in dict(shortened(letter).headers)
    assert "penstock-dlq-traceback" not in dict(without_failure_headers(letter.headers))


def test_a_second_dead_letter_replaces_the_first_one_s_reasons() -> None:
    first = letter_of(RECORD)
    again = Record("orders.dlq", 0, 7, first.key, first.value, first.headers)
    second = letter_of(again, attempts=1)
    assert len(second.headers) == len(first.headers)
    assert dict(second.headers)["penstock-dlq-offset"] == b"7"


@given(st.text(), st.integers(3, 50))
def test_a_bounded_text_is_a_whole_text_of_at_most_that_many_bytes(text: str, limit: int) -> None:
    short = bounded(text, limit)
    assert len(short.encode()) <= limit
    assert short == text.encode(errors="replace").decode() or short.endswith("…")


def test_a_long_message_does_not_grow_the_dead_letter_past_its_bound() -> None:
    headers = dict(letter_of(RECORD, message="é" * 100_000).headers)
    assert len(headers["penstock-dlq-error-message"] or b"") <= MAX_MESSAGE_BYTES


def test_a_message_with_half_a_surrogate_pair_can_be_written() -> None:
    assert dict(letter_of(RECORD, message="bad \ud800 text").headers)["penstock-dlq-error-message"] == b"bad ? text"
