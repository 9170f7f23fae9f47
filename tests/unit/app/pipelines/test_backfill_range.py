"""Ranges of a backfill, as the command line has them."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from penstock.app.pipelines import Span, read_log_position
from penstock.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("earliest", "earliest"),
        ("latest", "latest"),
        ("2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
        ("2026-01-31T12:00:00+02:00", datetime(2026, 1, 31, 12, tzinfo=timezone(timedelta(hours=2)))),
        ("orders:0=100", {("orders", 0): 100}),
        ("orders:0=100, eu.orders:12=7", {("orders", 0): 100, ("eu.orders", 12): 7}),
    ],
)
def test_a_position_is_a_time_an_end_of_the_log_or_offsets(text: str, position: Any) -> None:
    assert read_log_position(text, name="--from") == position


@pytest.mark.parametrize(
    "text", ["", "yesterday", "orders=5", "orders:0=5,orders", "orders:0=5,orders:0=6", "2026-13-01"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--to .* is not a position in a log"):
        read_log_position(text, name="--to")


def test_offsets_name_the_only_partitions_of_a_span() -> None:
    span = Span({("orders", 0): 5}, datetime(2026, 1, 1, tzinfo=UTC))
    assert span.includes(("orders", 0))
    assert not span.includes(("orders", 1))
    assert Span().includes(("orders", 1))
