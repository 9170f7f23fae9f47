"""Durations as people write them."""

from typing import Any

import pytest

from penstock.core.text.durations import seconds
from penstock.errors import ConfigError


@pytest.mark.parametrize(
    ("written", "expected"),
    [("250ms", 0.25), ("1s", 1.0), ("1.5m", 90.0), ("2h", 7200.0), ("1d", 86400.0), (" 3 s ", 3.0), (5, 5.0), (0, 0.0)],
)
def test_a_duration_is_read_as_written(written: Any, expected: float) -> None:
    assert seconds(written, name="x") == expected


@pytest.mark.parametrize("written", ["", "1", "s", "1 week", "-1s", -1, True, float("inf"), float("nan"), "1e3s"])
def test_an_invalid_duration_is_refused_by_name(written: Any) -> None:
    with pytest.raises(ConfigError, match="commit_every=") as caught:
        seconds(written, name="commit_every")
    assert "250ms" in caught.value.hint
