"""Times and durations as operators write them."""

from datetime import UTC, datetime

import pytest

from penstock.core.text.timestamps import moment, moment_or_ago, span
from penstock.errors import ConfigError

NOON = datetime(2030, 1, 31, 12, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "text",
    ["2030-01-31T12:00:00", "2030-01-31T12:00:00.000", "2030-01-31T12:00:00Z", "2030-01-31T14:00:00+02:00"],
)
def test_a_time_without_an_offset_is_utc(text: str) -> None:
    assert moment(text, name="--to-datetime") == NOON


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("P1DT2H", 93600), ("PT90S", 90), ("PT1.5S", 1.5), ("P2D", 172800), ("26h", 93600), ("5m", 300)],
)
def test_durations_are_in_javas_or_penstocks_format(text: str, seconds: float) -> None:
    assert span(text, name="--by-duration") == seconds


@pytest.mark.parametrize("text", ["P", "PT", "yesterday", "", "-5m", "P1Y"])
def test_an_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        span(text, name="--by-duration")


def test_an_invalid_time_is_refused() -> None:
    with pytest.raises(ConfigError, match="--from='noon' is not a date and time"):
        moment_or_ago("noon", now=NOON, name="--from")


def test_a_time_or_how_long_ago() -> None:
    assert moment_or_ago("15m", now=NOON, name="--from") == NOON - 900
    assert moment_or_ago("2030-01-31T12:00:00", now=0, name="--from") == NOON
