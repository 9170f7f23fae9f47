"""``Later``: what a handler may ask for, and where the record waits."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import HandlerBug, Later
from penstock.core.failures.later import LEAST_SECONDS
from penstock.core.failures.outcome import Delayed, Postpone, TryAgain, decide_delay
from penstock.core.failures.retry_topic import read_retry_info, retry_record
from penstock.core.records.record import Record

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_a_duration_counts_from_now_and_a_time_stays_the_same() -> None:
    assert Later("10m").seconds_from(NOW.timestamp()) == 600
    assert Later(2.5).seconds_from(0) == 2.5
    assert Later(at=NOW + timedelta(minutes=1)).seconds_from(NOW.timestamp()) == 60


def test_a_time_in_the_past_is_no_endless_loop() -> None:
    assert Later(at=NOW).seconds_from(NOW.timestamp() + 5) == LEAST_SECONDS
    assert Later(0).seconds_from(0) == LEAST_SECONDS


def test_the_reason_is_the_handler_s_own_or_the_wait() -> None:
    assert str(Later("10m")) == "again in 10m"
    assert str(Later("10m", reason="the shop is closed")) == "the shop is closed"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "a duration or at=, and not both"),
        ({"wait": "1m", "at": NOW}, "a duration or at=, and not both"),
        ({"wait": "soon"}, "Later='soon' is not a duration"),
        ({"wait": -1}, "Later=-1 is not a duration"),
        ({"at": NOW.replace(tzinfo=None)}, "needs a datetime with a time zone"),
        ({"at": 12}, "needs a datetime with a time zone"),
    ],
)
def test_a_wrong_wait_is_a_bug_of_the_handler(arguments: dict[str, object], says: str) -> None:
    with pytest.raises(HandlerBug, match=says):
        Later(**arguments)  # type: ignore[arg-type]


TOPICS = st.lists(st.integers(1, 10_000), unique=True, max_size=4).map(lambda found: [*map(float, sorted(found))])


@given(retry_topics=TOPICS, wait=st.floats(0.1, 100_000))
def test_however_often_it_is_postponed_a_record_comes_at_its_time_and_not_before(
    retry_topics: list[float], wait: float
) -> None:
    now, until, decisions = 1_000.0, 1_000.0 + wait, []
    while now < until:
        decision = decide_delay(Delayed(until - now, until), retry_topics=retry_topics)
        decisions.append(decision)
        if isinstance(decision, Postpone):
            assert decision.delay in retry_topics
            assert decision.delay <= until - now, "it never comes too late"
        else:
            assert all(delay > until - now for delay in retry_topics), "in memory only if no topic fits"
        now += decision.delay
    delays = [each.delay for each in decisions]
    assert delays == sorted(delays, reverse=True), "the longest topics first"
    assert sum(isinstance(each, TryAgain) for each in decisions) <= 1
    assert now == pytest.approx(until)


def test_a_retry_record_says_until_when_it_waits_and_has_no_error() -> None:
    record = Record("orders", 0, 7, b"k", b"v", (("own", b"1"), ("penstock-retry-error-type", b"OSError")))
    delayed = Delayed(600.0, until=1_600.0, reason="closed")
    found = retry_record(record, delayed, topic="orders.retry.5m", group="g", attempt=3, due=1_300.0)
    headers = dict(found.headers)
    assert headers["penstock-retry-until"] == b"1600000"
    assert headers["penstock-retry-due"] == b"1300000"
    assert headers["penstock-retry-attempt"] == b"3"
    assert "penstock-retry-error-type" not in headers
    assert headers["own"] == b"1"


def test_a_damaged_until_is_reported() -> None:
    headers = (
        ("penstock-retry-attempt", b"1"), ("penstock-retry-due", b"1000"), ("penstock-retry-until", b"tomorrow"),
    )  # fmt: skip
    found = read_retry_info(headers, group="g", longest=60, now=2.0)
    assert found.wait == 0
    assert found.problem.startswith("penstock-retry-until is not a time")
