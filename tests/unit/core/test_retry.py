"""When a failed record is attempted again."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import Retry
from penstock.errors import ConfigError


def test_waits_grow_by_the_factor_up_to_the_limit() -> None:
    retry = Retry(attempts=6, first="1s", factor=3, limit="10s", jitter=0)
    assert [retry.delay_after(attempt, 0.5) for attempt in range(1, 7)] == [1.0, 3.0, 9.0, 10.0, 10.0, None]


def test_one_attempt_means_no_retry() -> None:
    assert Retry(attempts=1).delay_after(1, 0.5) is None


@given(
    attempt=st.integers(1, 10_000),
    factor=st.floats(1, 100),
    jitter=st.floats(0, 1),
    random=st.floats(0, 1, exclude_max=True),
)
def test_jitter_stays_inside_its_share_and_no_wait_overflows(
    attempt: int, factor: float, jitter: float, random: float
) -> None:
    retry = Retry(attempts=10_001, first="1s", factor=factor, limit="1m", jitter=jitter)
    plain = Retry(attempts=10_001, first="1s", factor=factor, limit="1m", jitter=0).delay_after(attempt, random)
    moved = retry.delay_after(attempt, random)
    assert plain is not None
    assert moved is not None
    assert plain * (1 - jitter) - 1e-9 <= moved <= plain * (1 + jitter) + 1e-9


@pytest.mark.parametrize(
    "wrong",
    [
        {"attempts": 0},
        {"attempts": True},
        {"attempts": 1.5},
        {"factor": 0.5},
        {"factor": 101},
        {"jitter": 2},
        {"first": "soon"},
        {"limit": "x"},
    ],
)
def test_a_policy_that_cannot_work_is_refused_when_it_is_written(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"Retry.{next(iter(wrong))}"):
        Retry(**wrong)
