"""The limit that concurrency="auto" finds, with simulated dependencies."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concurrency_simulation import Dependency, Ended, halves, p99, simulate, slows, throughput
from penstock.core.scheduling.auto_concurrency import AutoConcurrency


def run(dependency: Dependency, seconds: float, *, most: int = 256, **more: object) -> list[Ended]:
    return simulate(AutoConcurrency(most), dependency, seconds=seconds, **more)  # type: ignore[arg-type]


def limits(ended: list[Ended], start: float, end: float = math.inf) -> list[int]:
    return [each.limit for each in ended if start <= each.at < end]


def test_it_starts_low_and_finds_the_capacity_within_two_seconds() -> None:
    ended = run(Dependency(), 4)
    assert ended[0].limit == 4
    assert throughput(ended, 2, 4) >= 0.9 * 6400
    assert p99(ended, 2, 4) <= 1.2 * 0.010


@pytest.mark.parametrize("spread", [0.0, 0.5, 1.0])
def test_calls_of_different_lengths_cost_no_throughput(spread: float) -> None:
    ended = run(Dependency(spread=spread), 10)
    assert throughput(ended, 4, 10) >= 0.9 * 6400
    assert max(limits(ended, 4)) <= 2 * 64


@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_when_the_capacity_halves_it_is_back_within_ten_seconds(spread: float) -> None:
    ended = run(Dependency(spread=spread), 16, changes={4.0: halves})
    assert throughput(ended, 12, 16) >= 0.9 * 3200
    assert max(limits(ended, 12)) <= 64


@pytest.mark.parametrize("at", [4.02, 4.04, 4.06, 4.08])
def test_a_change_within_a_window_is_not_taken_for_slower_calls(at: float) -> None:
    ended = run(Dependency(), 8, changes={at: halves})
    assert max(limits(ended, at + 1)) <= 45
    assert throughput(ended, at + 1, 8) >= 0.9 * 3200


def test_when_all_calls_take_longer_the_limit_stays() -> None:
    """A smaller limit would not make them quicker, and would only do less."""
    ended = run(Dependency(), 16, changes={4.0: slows})
    assert throughput(ended, 6, 16) >= 0.9 * 3200


def test_when_the_capacity_returns_so_does_the_throughput() -> None:
    def doubles(dependency: Dependency) -> None:
        dependency.capacity *= 2

    ended = run(Dependency(), 16, changes={4.0: halves, 8.0: doubles})
    assert throughput(ended, 13, 16) >= 0.9 * 6400


def test_a_dependency_that_refuses_calls_gets_no_more_than_it_takes() -> None:
    ended = run(Dependency(capacity=64, refuses_above=48), 10)
    settled = [each for each in ended if each.at > 4]
    assert sum(not each.ok for each in settled) < 0.08 * len(settled)
    assert throughput(ended, 4, 10) >= 0.9 * 4800


def test_failures_that_no_limit_changes_do_not_lower_it() -> None:
    ended = run(Dependency(fails=0.2), 8)
    assert throughput(ended, 4, 8) >= 0.9 * 0.8 * 6400


def test_while_nothing_succeeds_hardly_any_call_is_made_and_then_all_go_on() -> None:
    def goes_down(dependency: Dependency) -> None:
        dependency.fails = 1.0

    def comes_back(dependency: Dependency) -> None:
        dependency.fails = 0.0

    ended = run(Dependency(), 14, changes={4.0: goes_down, 8.0: comes_back})
    assert max(limits(ended, 6, 8)) <= 2
    assert throughput(ended, 11, 14) >= 0.9 * 6400


def test_without_enough_to_do_the_limit_does_not_grow() -> None:
    ended = run(Dependency(), 10, offered=5)
    assert max(limits(ended, 0)) <= 10
    assert throughput(ended, 1, 10) >= 0.95 * 500


def test_calls_that_compute_on_one_core_run_few_at_once() -> None:
    """Each takes as much longer as there are more of them: nothing is gained by more."""
    ended = run(Dependency(seconds=0.001, capacity=1), 20)
    assert max(limits(ended, 10)) <= 6


def test_slow_calls_are_found_out_too() -> None:
    ended = run(Dependency(seconds=1.0, capacity=20, spread=0.3), 300)
    assert throughput(ended, 60, 300) >= 0.85 * 20
    assert max(limits(ended, 60)) <= 45


def test_it_never_exceeds_the_most() -> None:
    assert max(limits(run(Dependency(capacity=1000), 4, most=30), 0)) == 30
    assert AutoConcurrency(2).limit == 2


def test_a_trial_takes_a_small_part_of_the_time() -> None:
    ended = run(Dependency(), 16)
    low = sum(1 for each in ended if each.at > 4 and each.limit < 50)
    assert low / len(ended) < 0.04


@settings(max_examples=60, deadline=None)
@given(
    most=st.integers(1, 300),
    calls=st.lists(
        st.tuples(st.integers(1, 50), st.floats(0, 100), st.integers(0, 50), st.integers(0, 400), st.floats(0, 5)),
        max_size=300,
    ),
)
def test_whatever_is_observed_the_limit_is_between_one_and_the_most(
    most: int, calls: list[tuple[int, float, int, int, float]]
) -> None:
    rule, now = AutoConcurrency(most), 0.0
    for count, seconds, failed, busy, passed in calls:
        now += passed
        before = rule.limit
        changed = rule.observe(count, seconds, min(failed, count), busy=busy, now=now)
        assert 1 <= rule.limit <= most
        assert changed == (rule.limit != before)
        assert rule.limit <= 2 * before + 20
