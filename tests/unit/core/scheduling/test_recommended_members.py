"""How many members a group should have: enough, no more than partitions, and without flapping."""

from dataclasses import replace
from itertools import pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.scheduling.recommended_members import (
    CALM_SECONDS,
    DRAIN_SECONDS,
    LEAST_SECONDS,
    PAUSES_APART,
    GroupLoad,
    RecommendedMembers,
    is_too_few,
    needed,
    needed_now,
    needed_without_limit,
)

LOAD = GroupLoad(rate_in=700.0, lag=0, service_seconds=0.1, concurrency=10, partitions=24, members=10)
STEP = 10.0

loads = st.builds(
    GroupLoad,
    rate_in=st.floats(0, 1e6),
    lag=st.integers(0, 10**9),
    service_seconds=st.floats(0, 600),
    concurrency=st.integers(1, 1_000),
    partitions=st.integers(1, 2_000),
    members=st.integers(0, 3_000),
    one_per_partition=st.booleans(),
    rebalance_seconds=st.floats(0, 60),
)


def test_the_number_follows_from_arrivals_and_service_time() -> None:
    assert needed(LOAD) == 10, "70 busy workers, at most 70 % of the time busy, 10 in each member"
    assert needed(replace(LOAD, rate_in=0.0)) == 1
    assert needed(replace(LOAD, rate_in=7_000.0)) == 24, "a member without a partition would be idle"
    assert needed(replace(LOAD, one_per_partition=True)) == 3, "24 partitions keep only 24 workers busy"
    assert needed(replace(LOAD, lag=int(700 * DRAIN_SECONDS) + 7_000)) == 20, "to be rid of the backlog in time"
    assert needed(replace(LOAD, lag=5_000)) == 10, "records in progress are no backlog"


@given(history=st.lists(st.tuples(loads, st.floats(0.1, 1_000)), min_size=1, max_size=40))
def test_it_is_never_less_than_one_or_more_than_partitions_and_changes_are_apart(
    history: list[tuple[GroupLoad, float]],
) -> None:
    rule, now, before, changed = RecommendedMembers(), 0.0, None, None
    for load, seconds in history:
        now += seconds
        found = rule.observe(load, now)
        assert 1 <= found <= load.partitions
        # A topic that shrinks is the only reason to change sooner.
        if before is not None and found != before and found < load.most:
            if changed is not None:
                assert now - changed >= max(LEAST_SECONDS, PAUSES_APART * load.rebalance_seconds)
            changed = now
        elif found != before and before is not None:
            changed = now
        before = found


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), rate=st.floats(1, 1_600), noise=st.floats(0, 0.08))
def test_a_steady_load_with_noise_does_not_make_it_flap(seed: int, rate: float, noise: float) -> None:
    rule, random, seen = RecommendedMembers(), Random(seed), list[int]()
    load = replace(LOAD, rate_in=rate, members=needed(replace(LOAD, rate_in=rate)))
    for step in range(360):  # an hour
        now = replace(load, rate_in=rate * random.uniform(1 - noise, 1 + noise))
        seen.append(rule.observe(now, step * STEP))
    changes = sum(before != after for before, after in pairwise(seen))
    assert changes <= 1, seen
    assert max(seen) - min(seen) <= 1 + load.members // 8


@settings(max_examples=20)
@given(before=st.floats(10, 300), factor=st.floats(1.6, 4))
def test_it_reacts_to_more_at_once_and_to_less_after_a_while(before: float, factor: float) -> None:
    rule, now = RecommendedMembers(), 0.0

    def settle(rate: float, seconds: float) -> list[int]:
        nonlocal now
        found = []
        for _ in range(round(seconds / STEP)):
            now += STEP
            found.append(rule.observe(replace(LOAD, rate_in=rate, members=1), now))
        return found

    low = settle(before, 900)[-1]
    high = settle(before * factor, LEAST_SECONDS + STEP)[-1]
    assert not is_too_few(replace(LOAD, rate_in=before * factor), high)
    calm = settle(before, CALM_SECONDS - 2 * STEP)
    assert calm[-1] == high, "less for a moment changes nothing"
    assert settle(before, 3 * CALM_SECONDS)[-1] <= max(low, needed(replace(LOAD, rate_in=before)))


@settings(max_examples=20)
@given(
    rate=st.floats(100, 1_500), backlog=st.integers(0, 500_000), rebalance=st.floats(0, 10), start=st.integers(1, 24)
)
def test_a_group_that_follows_it_gets_rid_of_its_lag_and_stays_without(
    rate: float, backlog: int, rebalance: float, start: int
) -> None:
    """A queue with the members that it recommends; during each rebalance nobody works."""
    rule, lag, members, changes = RecommendedMembers(), float(backlog), start, 0
    for step in range(540):  # an hour and a half
        load = replace(LOAD, rate_in=rate, lag=int(lag), members=members, rebalance_seconds=rebalance)
        wanted = rule.observe(load, step * STEP)
        works = STEP - rebalance if wanted != members else STEP
        changes += wanted != members
        members = wanted
        capacity = members * load.concurrency / load.service_seconds
        lag = max(0.0, lag + rate * STEP - capacity * works)
    assert lag <= rate * 30, (lag, members)
    assert changes <= 12
    assert members <= needed(replace(LOAD, rate_in=rate)) + 1


def test_members_that_are_busy_but_not_too_busy_get_no_help() -> None:
    rule = RecommendedMembers()
    assert {rule.observe(replace(LOAD, rate_in=840.0), step * STEP) for step in range(100)} == {10}
    assert rule.observe(replace(LOAD, rate_in=860.0), 1_000.0) == 13


def test_one_measurement_recommends_as_the_rule_does_at_first_and_fewer_at_once() -> None:
    assert needed_now(replace(LOAD, rate_in=860.0)) == 13
    assert needed_now(replace(LOAD, rate_in=840.0)) == 10, "busy, but not too busy"
    assert needed_now(replace(LOAD, rate_in=70.0)) == 1
    assert needed_now(replace(LOAD, members=0)) == 10
    assert needed_now(replace(LOAD, rate_in=0.0, members=0)) == 1
    assert needed_now(replace(LOAD, members=30)) == 10
    assert needed_without_limit(replace(LOAD, rate_in=7_000.0)) == 100
    assert LOAD.busy_share == 0.7
    assert replace(LOAD, members=0).busy_share is None


@given(load=loads)
def test_one_measurement_never_recommends_members_that_are_too_few_or_useless(load: GroupLoad) -> None:
    found = needed_now(load)
    assert 1 <= found <= load.most
    assert not is_too_few(load, found)
