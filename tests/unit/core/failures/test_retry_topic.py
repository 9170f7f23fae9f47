"""The headers of a record in a retry topic, and which of them are used when it comes back."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import Record
from penstock.core.failures.dead_letter import dead_letter, shortened
from penstock.core.failures.outcome import Failed, ProducerRecord
from penstock.core.failures.retry_topic import RetryInfo, checked_durations, read_retry_info, retry_record, retry_topics
from penstock.core.records.origin import Origin
from penstock.core.records.record import Header
from penstock.errors import ConfigError

RECORD = Record("orders", 3, 42, b"k", b"\xff\x00", (("trace", b"1"),), 1_700_000_000_000)
NOW = 1_700_000_100.0
FAILURE = Failed("OSError", "away")


def waiting(record: Record = RECORD, *, attempt: int = 2, due: float = NOW, message: str = "away") -> ProducerRecord:
    failure = Failed("OSError", message)
    return retry_record(record, failure, topic="orders.retry.1m", group="shop", attempt=attempt, due=due)


def back(outgoing: ProducerRecord, offset: int = 7) -> Record:
    """The record as the consumer reads it from the retry topic."""
    return Record(outgoing.topic, 0, offset, outgoing.key, outgoing.value, outgoing.headers, 1_700_000_200_000)


def read(headers: tuple[Header, ...], *, now: float = NOW) -> RetryInfo:
    return read_retry_info(headers, group="shop", longest=60.0, now=now)


def changed(name: str, value: bytes | None) -> tuple[Header, ...]:
    headers = dict(waiting(due=NOW + 30).headers)
    headers[f"penstock-retry-{name}"] = value
    return tuple(headers.items())


def test_key_value_and_headers_are_untouched_and_the_notes_follow() -> None:
    outgoing = waiting(due=NOW + 60)
    assert (outgoing.topic, outgoing.key, outgoing.value) == ("orders.retry.1m", b"k", b"\xff\x00")
    assert outgoing.headers == (
        ("trace", b"1"),
        ("penstock-retry-topic", b"orders"),
        ("penstock-retry-partition", b"3"),
        ("penstock-retry-offset", b"42"),
        ("penstock-retry-timestamp", b"1700000000000"),
        ("penstock-retry-group", b"shop"),
        ("penstock-retry-attempt", b"2"),
        ("penstock-retry-due", b"1700000160000"),
        ("penstock-retry-error-type", b"OSError"),
        ("penstock-retry-error-message", b"away"),
    )


def test_a_second_wait_replaces_the_retry_headers_and_keeps_the_records_source() -> None:
    first = waiting()
    second = waiting(back(first), attempt=3)
    assert len(second.headers) == len(first.headers)
    headers = dict(second.headers)
    assert (headers["penstock-retry-topic"], headers["penstock-retry-offset"]) == (b"orders", b"42")
    assert headers["penstock-retry-attempt"] == b"3"


def test_a_dead_letter_names_the_records_source_and_keeps_no_retry_headers() -> None:
    letter = dead_letter(back(waiting()), FAILURE, topic="orders.dlq", group="shop", attempts=5, now=NOW)
    headers = dict(letter.headers)
    assert not [name for name in headers if name.startswith("penstock-retry-")]
    assert [headers[f"penstock-dlq-{name}"] for name in ("topic", "partition", "offset", "timestamp", "attempts")] == [
        b"orders", b"3", b"42", b"1700000000000", b"5",
    ]  # fmt: skip


def test_long_messages_and_names_are_cut() -> None:
    assert sum(len(name) + len(value or b"") for name, value in waiting(message="x" * 100_000).headers) < 2_000


def test_what_is_spared_leaves_the_way_back() -> None:
    names = [name for name, _ in shortened(waiting()).headers]
    assert names == [
        "trace",
        *(f"penstock-retry-{n}" for n in ("topic", "partition", "offset", "group", "attempt", "due")),
    ]
    letter = dead_letter(RECORD, FAILURE, topic="dlq", group="shop", attempts=1, now=NOW)
    assert [name for name, _ in shortened(letter).headers] == [
        "trace", "penstock-dlq-topic", "penstock-dlq-partition", "penstock-dlq-offset",
    ]  # fmt: skip


def test_a_record_comes_back_as_its_next_attempt_when_it_is_due() -> None:
    headers = waiting(attempt=4, due=NOW + 12.5).headers
    assert read(headers) == RetryInfo(3, 12.5)
    assert read(headers, now=NOW + 12.5) == RetryInfo(3, 0.0)
    assert read(headers, now=NOW + 1_000) == RetryInfo(3, 0.0)


def test_a_record_of_another_group_is_not_of_this_group() -> None:
    assert not read_retry_info(waiting().headers, group="other", longest=60.0, now=NOW).of_this_group
    assert not read(changed("group", b"\xff")).of_this_group


def test_clocks_may_be_a_little_apart() -> None:
    headers = waiting(due=NOW + 60).headers
    assert read(headers, now=NOW - 30) == RetryInfo(1, 90.0)


@pytest.mark.parametrize("due", [b"", b"soon", b"-5", b"1e9", b"9" * 18, b"9" * 19, b"9" * 5_000, "١٢".encode(), None])
def test_a_damaged_time_means_due_now_and_is_reported(due: bytes | None) -> None:
    said = read(changed("due", due))
    assert (said.failures, said.wait, said.of_this_group) == (1, 0.0, True)
    assert "penstock-retry-due is not a possible time" in said.problem


@pytest.mark.parametrize("attempt", [b"", b"two", b"0", b"-1", b"1000001", b"9" * 5_000, None])
def test_a_damaged_attempt_means_the_first_and_is_reported(attempt: bytes | None) -> None:
    said = read(changed("attempt", attempt))
    assert (said.failures, said.wait, said.of_this_group) == (0, 30.0, True)
    assert "penstock-retry-attempt is not the number" in said.problem


def test_a_record_without_retry_headers_is_handled_at_once() -> None:
    said = read((("trace", b"1"),))
    assert (said.failures, said.wait, said.of_this_group) == (0, 0.0, True)
    assert "attempt" in said.problem
    assert "due" in said.problem


@given(st.dictionaries(st.sampled_from(["topic", "partition", "offset", "timestamp", "attempt", "due"]), st.binary()))
def test_nothing_in_a_header_gets_further_than_its_bounds(hostile: dict[str, bytes]) -> None:
    headers = tuple((f"penstock-retry-{name}", value) for name, value in hostile.items())
    said = read(headers)
    assert 0 <= said.failures < 1_000_000
    assert 0 <= said.wait <= 120
    origin = Record("orders.retry.1m", 0, 7, None, None, headers).origin
    assert origin.topic in ("orders", "orders.retry.1m")
    assert 0 <= origin.partition < 2**31
    assert 0 <= origin.offset < 2**63


def test_the_origin_is_read_from_a_retry_topic_of_that_very_source_and_from_nowhere_else() -> None:
    notes = waiting().headers
    assert str(Record("orders.retry.1m", 0, 7, None, None, notes).origin) == "orders[3]@42"
    for topic in ("orders", "bills.retry.1m", "orders.dlq"):
        assert Record(topic, 1, 7, None, None, notes, 5).origin == Origin(topic, 1, 7, 5)


@pytest.mark.parametrize(
    "damage", [("topic", None), ("partition", b"x"), ("partition", b"2147483648"), ("offset", None)]
)
def test_a_damaged_origin_is_none(damage: tuple[str, bytes | None]) -> None:
    assert Record("orders.retry.1m", 0, 7, None, None, changed(*damage)).origin.topic == "orders.retry.1m"


def test_an_origin_without_a_time_is_still_an_origin() -> None:
    origin = Record("orders.retry.1m", 0, 7, None, None, changed("timestamp", b"-1")).origin
    assert origin == Origin("orders", 3, 42, -1)


def test_topics_are_named_after_their_source_and_duration() -> None:
    named = retry_topics(["a", "b"], checked_durations([0.25, "2 s", 90]))
    assert [(topic.name, topic.source, topic.seconds) for topic in named] == [
        ("a.retry.0.25s", "a", 0.25), ("a.retry.2s", "a", 2.0), ("a.retry.90s", "a", 90.0),
        ("b.retry.0.25s", "b", 0.25), ("b.retry.2s", "b", 2.0), ("b.retry.90s", "b", 90.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ("1m", "is not a list of durations"),
        (60, "is not a list of durations"),
        (["soon"], "is not a duration"),
        (["10m", "1m"], "is not a list of ascending durations"),
        (["1m", "60s"], "is not a list of ascending durations"),
        ([0, "1m"], "is not a list of ascending durations"),
    ],
)
def test_durations_that_cannot_work_are_refused(wrong: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        checked_durations(wrong)
    assert caught.value.hint
