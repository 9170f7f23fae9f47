"""The buckets of tenants: no window has more calls than the rate, in bounded memory."""

from collections import defaultdict
from collections.abc import Hashable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.scheduling.token_buckets import TokenBuckets


def begin(buckets: TokenBuckets, tenant: Hashable, now: float) -> bool:
    """Begin a call of this tenant, if it may begin now."""
    bucket = buckets.bucket(tenant, now)
    if buckets.due(bucket, now) > now:
        return False
    buckets.take(bucket, now)
    return True


@given(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from([0.0, 0.001, 0.04, 0.1, 0.7, 3.0])), max_size=200),
    st.integers(1, 5),
    st.sampled_from([2, 4, 1_000]),
)
def test_no_tenant_exceeds_its_rate_in_any_window(calls: list[tuple[int, float]], burst: int, most: int) -> None:
    buckets, now = TokenBuckets(0.1, burst, most=most), 100.0
    begun: dict[int, list[float]] = defaultdict(list)
    for tenant, pause in calls:
        now += pause
        if begin(buckets, tenant, now):
            begun[tenant].append(now)
    for times in begun.values():
        for at in times:
            assert len([other for other in times if at <= other < at + 1.0]) <= burst + 9
            assert len([other for other in times if at <= other < at + 0.05]) <= burst


@given(
    st.lists(
        st.tuples(
            st.integers(0, 9),
            st.sampled_from(["begin", "claim", "use a claim", "drop a claim"]),
            st.sampled_from([0.0, 0.001, 0.04, 0.1, 0.7, 3.0]),
        ),
        max_size=200,
    ),
    st.integers(1, 5),
    st.sampled_from([2, 4, 1_000]),
)
def test_claimed_calls_exceed_no_rate_whenever_they_begin(
    steps: list[tuple[int, str, float]], burst: int, most: int
) -> None:
    buckets, now = TokenBuckets(0.1, burst, most=most), 100.0
    begun: dict[int, list[float]] = defaultdict(list)
    claims: list[tuple[int, Hashable]] = []
    for tenant, what, pause in steps:
        now += pause
        if what in ("begin", "claim"):
            bucket = buckets.bucket(tenant, now)
            if buckets.due(bucket, now, claims=buckets.claims(bucket)) > now:
                continue
            if what == "claim":
                buckets.claim(bucket)
                claims.append((tenant, bucket))
            else:
                buckets.take(bucket, now)
                begun[tenant].append(now)
        elif claims:
            owner, bucket = claims.pop(tenant % len(claims))
            buckets.end_claim(bucket)
            if what == "use a claim":
                buckets.take(bucket, now)
                begun[owner].append(now)
    for times in begun.values():
        for at in times:
            assert len([other for other in times if at <= other < at + 1.0]) <= burst + 9
            assert len([other for other in times if at <= other < at + 0.05]) <= burst


def test_a_full_bucket_begins_a_burst_and_then_one_call_after_the_other() -> None:
    buckets = TokenBuckets(0.5, 3)
    assert [begin(buckets, "a", 1.0) for _ in range(4)] == [True, True, True, False]
    assert buckets.due("a", 1.0) == pytest.approx(1.5)
    assert begin(buckets, "a", 1.5)
    assert not begin(buckets, "a", 1.9)
    assert begin(buckets, "b", 1.9)


def test_tenants_with_full_buckets_are_forgotten() -> None:
    buckets = TokenBuckets(0.01, 1)
    for number in range(200_000):
        assert begin(buckets, number, number / 1_000)
    assert len(buckets) <= 2_048


def test_at_the_bound_tenants_share_buckets_and_none_exceeds_its_rate() -> None:
    buckets = TokenBuckets(10.0, 1, most=100)
    assert all(begin(buckets, number, 0.0) for number in range(100))
    assert sum(begin(buckets, number, 1.0) for number in range(100, 300_000)) <= 65_536
    assert len(buckets) <= 100 + 65_536


def test_a_tenant_keeps_to_the_bucket_that_it_shares_until_it_is_full() -> None:
    buckets = TokenBuckets(10.0, 1, most=100)
    assert all(begin(buckets, number, 0.0) for number in range(101))
    assert begin(buckets, 101, 1.0)
    assert begin(buckets, 500, 10.5), "full buckets are removed at this call"
    assert len(buckets) == 2
    assert not begin(buckets, 101, 10.6), "there is room for a bucket of its own, but it must not begin again"
    assert begin(buckets, 101, 11.0)


def test_a_tenant_keeps_to_the_bucket_of_its_claim() -> None:
    buckets = TokenBuckets(10.0, 1, most=2)
    buckets.claim(buckets.bucket("early", 0.0))
    assert begin(buckets, "a", 0.0)
    assert begin(buckets, "b", 0.0)
    # There is no room for further buckets of their own, so others share some.
    assert buckets.bucket("early", 0.0) == "early"
    shared = buckets.bucket("late", 0.0)
    assert shared != "late"
    buckets.claim(shared)
    # At this call full buckets are removed, and there is room again.
    buckets.end_claim("early")
    buckets.take("early", 100.0)
    assert len(buckets) == 1
    assert buckets.bucket("late", 100.0) == shared
    buckets.end_claim(shared)
    buckets.take(shared, 100.0)
    assert not begin(buckets, "late", 109.0)


def test_another_rate_keeps_what_was_taken() -> None:
    buckets = TokenBuckets(1.0, 4)
    assert [begin(buckets, "a", 0.0) for _ in range(4)] == [True] * 4
    buckets.change(0.1, 4, 0.0)
    assert buckets.due("a", 0.0) == pytest.approx(0.1)
    buckets.change(2.0, 4, 0.0)
    assert buckets.due("a", 0.0) == pytest.approx(2.0)
