"""The parts of a record that a handler sees."""

from datetime import UTC, datetime

from penstock import Record


def test_a_record_says_where_it_is() -> None:
    assert str(Record("orders", 2, 17, None, b"")) == "orders[2]@17"


def test_its_timestamp_is_in_utc_or_unknown() -> None:
    assert Record("t", 0, 0, None, None, (), 1_700_000_000_500).timestamp == datetime(
        2023, 11, 14, 22, 13, 20, 500_000, tzinfo=UTC
    )
    assert Record("t", 0, 0, None, None).timestamp is None
