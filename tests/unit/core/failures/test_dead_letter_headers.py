"""Dead letters in the four header styles."""

import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.failures.dead_letter import dead_letter
from penstock.core.failures.dead_letter_headers import (
    DEAD_LETTER_PREFIX,
    REPLAY_PREFIX,
    DeadLetterHeader,
    DeadLetterInfo,
    ReplayHeader,
    read_dead_letter_info,
    replay_count,
    without_failure_headers,
)
from penstock.core.failures.outcome import Failed
from penstock.core.records.origin import RETRY_PREFIX, RetryHeader
from penstock.core.records.record import Header, Record

OWN: tuple[Header, ...] = (("trace", b"abc"), ("source_of_truth", b"kept"))

SPRING: tuple[Header, ...] = (
    ("kafka_dlt-original-topic", b"orders"),
    ("kafka_dlt-original-partition", struct.pack(">i", 3)),
    ("kafka_dlt-original-offset", struct.pack(">q", 42)),
    ("kafka_dlt-original-timestamp", struct.pack(">q", 1700000000000)),
    ("kafka_dlt-original-timestamp-type", b"CreateTime"),
    ("kafka_dlt-original-consumer-group", b"shipping"),
    ("kafka_dlt-exception-fqcn", b"org.springframework.kafka.listener.ListenerExecutionFailedException"),
    ("kafka_dlt-exception-cause-fqcn", b"com.example.BadOrder"),
    ("kafka_dlt-exception-message", b"no such item"),
    ("kafka_dlt-exception-stacktrace", b"at ..."),
)
KARAFKA: tuple[Header, ...] = (
    ("source_topic", b"orders"),
    ("source_partition", b"3"),
    ("source_offset", b"42"),
    ("source_consumer_group", b"shipping"),
    ("source_attempts", b"2"),
    ("source_trace_id", b"t-1"),
)
SHARE: tuple[Header, ...] = (
    ("__dlq.errors.topic", b"orders"),
    ("__dlq.errors.partition", b"3"),
    ("__dlq.errors.offset", b"42"),
    ("__dlq.errors.group", b"shipping"),
    ("__dlq.errors.delivery.count", b"5"),
    ("__dlq.errors.message", b"rejected"),
)


def _ours() -> tuple[Header, ...]:
    record = Record("orders", 3, 42, b"k", b"v", OWN, 1700000000000)
    failure = Failed("app.BadOrder", "no such item")
    return dead_letter(record, failure, topic="dlq", group="shipping", attempts=4, now=1700000001).headers


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (
            _ours(),
            DeadLetterInfo(
                "penstock", "orders", 3, 42, 1700000000000, "shipping", 4, "app.BadOrder", "no such item", 1700000001000
            ),
        ),
        (
            SPRING,
            DeadLetterInfo(
                "spring",
                "orders",
                3,
                42,
                1700000000000,
                "shipping",
                None,
                "com.example.BadOrder",
                "no such item",
                traceback="at ...",
            ),
        ),
        (KARAFKA, DeadLetterInfo("karafka", "orders", 3, 42, None, "shipping", 2)),
        (SHARE, DeadLetterInfo("share", "orders", 3, 42, None, "shipping", 5, "", "rejected")),
        (OWN, DeadLetterInfo()),
    ],
    ids=["penstock", "spring", "karafka", "share", "none"],
)
def test_each_style_is_read_and_leaves_with_a_replay(headers: tuple[Header, ...], expected: DeadLetterInfo) -> None:
    assert read_dead_letter_info(headers) == expected
    assert without_failure_headers((*OWN, *(each for each in headers if each not in OWN))) == OWN


def test_the_reason_is_the_name_of_the_error_or_its_text() -> None:
    assert DeadLetterInfo(error_type="com.example.BadOrder").reason == "BadOrder"
    assert DeadLetterInfo(message="rejected").reason == "rejected"
    assert DeadLetterInfo().reason == "unknown"


def test_returns_are_counted_and_an_invalid_count_is_zero() -> None:
    assert replay_count([("penstock-replay-count", b"2")]) == 2
    assert replay_count([("penstock-replay-count", b"-2")]) == 0
    assert replay_count([("penstock-replay-count", b"x")]) == replay_count([]) == 0


def test_the_docs_name_every_header() -> None:
    docs = Path(__file__).parents[4] / "docs"
    failures, operating = (docs / "failures.md").read_text(), (docs / "operating.md").read_text()
    for page, prefix, names in (
        (failures, DEAD_LETTER_PREFIX, DeadLetterHeader),
        (failures, RETRY_PREFIX, RetryHeader),
        (operating, REPLAY_PREFIX, ReplayHeader),
    ):
        assert f"`{prefix}" in page
        # After the first header, pages write only the end of a name: `-partition`.
        missing = [name for name in names if not re.search(rf"-{name.removeprefix(prefix)}`", page)]
        assert not missing


NAMES = st.sampled_from([name for name, _ in (*SPRING, *KARAFKA, *SHARE, *_ours())] + [ReplayHeader.COUNT])


@given(st.lists(st.tuples(NAMES, st.none() | st.binary(max_size=3000)), max_size=12))
def test_no_header_is_an_error_and_every_text_is_bounded(headers: list[Header]) -> None:
    note = read_dead_letter_info(headers)
    assert len(note.message.encode()) <= 1024
    assert len(note.traceback.encode()) <= 4096
    assert len(note.topic.encode()) <= 249
    assert replay_count(headers) >= 0
