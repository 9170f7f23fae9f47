"""The headers that say from when and until when a record may be handled."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.records.time_headers import NO_TIMES, RecordTimes, read_times, time_headers
from penstock.errors import ConfigError

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_durations_count_from_now_and_times_stay_the_same() -> None:
    assert time_headers("10m", NOW + timedelta(hours=1), now=NOW.timestamp()) == (
        ("penstock-not-before", b"1893456600000"),
        ("penstock-expires", b"1893459600000"),
    )
    assert time_headers(None, None, now=0) == ()


@given(st.one_of(st.none(), st.integers(0, 10**9)), st.one_of(st.none(), st.integers(10**9 + 1, 2 * 10**9)))
def test_what_is_written_is_read_again(not_before: int | None, expires: int | None) -> None:
    assert read_times(time_headers(not_before, expires, now=0.0)) == RecordTimes(not_before, expires)


def test_a_record_without_these_headers_has_no_times() -> None:
    assert read_times([("type", b"created"), ("penstock-retry-until", b"5")]) is NO_TIMES


def test_the_last_of_two_headers_counts() -> None:
    assert read_times([("penstock-expires", b"1000"), ("penstock-expires", b"2000")]).expires == 2.0


@given(st.one_of(st.none(), st.binary()).filter(lambda value: value is None or not value.isdigit()))
def test_damaged_headers_are_named(value: bytes | None) -> None:
    assert read_times([("penstock-not-before", value)]).problem == (
        "the header penstock-not-before is not a time in milliseconds since 1970"
    )


@pytest.mark.parametrize(
    ("not_before", "expires", "says"),
    [
        ("2m", "1m", "no handler would ever get the record"),
        ("1m", "1m", "no handler would ever get the record"),
        (NOW.replace(tzinfo=None), None, "has no time zone"),
        (None, "soon", "is not a duration"),
    ],
)
def test_impossible_times_are_refused(not_before: str | datetime | None, expires: str | None, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        time_headers(not_before, expires, now=0.0)
