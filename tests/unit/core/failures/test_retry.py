"""When a failed record is attempted again."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import NO_RETRY, Retry
from penstock.core.failures.retry import check_policy, retry_for
from penstock.errors import ConfigError


def test_waits_grow_by_the_factor_up_to_the_limit() -> None:
    retry = Retry(attempts=6, first="1s", factor=3, limit="10s", jitter=0)
    assert [retry.wait_after(attempt) for attempt in range(1, 7)] == [1.0, 3.0, 9.0, 10.0, 10.0, None]


def test_one_attempt_means_no_retry() -> None:
    assert NO_RETRY.wait_after(1) is None


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
    plain = retry.wait_after(attempt)
    assert plain is not None
    assert 1 <= plain <= 60
    assert plain * (1 - jitter) - 1e-9 <= retry.jittered(plain, random) <= plain * (1 + jitter) + 1e-9


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


FEW, MANY = Retry(attempts=2), Retry(attempts=9)


@pytest.mark.parametrize("turn", [1, -1])
def test_the_nearest_class_of_an_error_decides_whatever_the_order_of_the_mapping(turn: int) -> None:
    policy = dict([(Exception, NO_RETRY), (OSError, FEW), (ConnectionError, MANY)][::turn])
    assert retry_for(policy, ConnectionResetError) is MANY
    assert retry_for(policy, TimeoutError) is FEW  # which is an OSError
    assert retry_for(policy, ValueError) is NO_RETRY
    assert retry_for(policy, SystemExit) == Retry()  # which is no Exception, and so not listed


def test_one_retry_is_for_every_error() -> None:
    assert retry_for(FEW, ValueError) is FEW


@pytest.mark.parametrize("good", [FEW, {ValueError: FEW}, {BaseException: NO_RETRY, KeyError: MANY}])
def test_a_retry_or_a_mapping_to_retries_is_a_policy(good: Any) -> None:
    check_policy(good)


@pytest.mark.parametrize(
    ("wrong", "problem", "hint"),
    [
        (5, "retry=5 is not a Retry", "Use Retry"),
        ({}, "lists no exception class", "Leave retry out"),
        ({"ValueError": FEW}, "has the key 'ValueError', which is not an exception class", "exception classes"),
        ({int: FEW}, "which is not an exception class", "exception classes"),
        ({ValueError("x"): FEW}, "which is not an exception class", "exception classes"),
        ({ValueError: 3}, "[ValueError] is 3, which is not a Retry", "NO_RETRY"),
    ],
)
def test_an_invalid_policy_is_refused_with_an_example_of_a_valid_one(wrong: Any, problem: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_policy(wrong)
    assert problem in caught.value.problem
    assert hint in caught.value.hint
