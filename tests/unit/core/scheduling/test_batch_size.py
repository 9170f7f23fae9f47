"""How batches grow and shrink."""

from dataclasses import replace
from random import Random
from statistics import median

from hypothesis import given
from hypothesis import strategies as st

from penstock.core.scheduling.batch_size import BatchSize

TARGET = 2.0
FIRST = BatchSize(10_000, most=1_000_000, seconds=TARGET)


def run(size: BatchSize, *, fixed: float, each: float, batches: int, lag: int = 10**9) -> BatchSize:
    """Full batches on a machine that takes ``fixed`` seconds for any batch and ``each`` for an offset."""
    for _ in range(batches):
        offsets = min(size.size, lag)
        size = size.after(offsets, fixed + each * offsets)
    return size


def test_quick_handlers_get_batches_that_take_as_long_as_they_should() -> None:
    size = run(FIRST, fixed=0.25, each=1e-5, batches=8)
    assert 0.9 * TARGET < 0.25 + size.size * 1e-5 < 1.1 * TARGET


def test_slow_handlers_get_small_ones() -> None:
    size = run(FIRST, fixed=0.25, each=0.01, batches=12)
    assert 0.9 * TARGET < 0.25 + size.size * 0.01 < 1.1 * TARGET


def test_the_bound_is_kept_from_the_first_batch_on() -> None:
    bounded = BatchSize(10_000, most=200, seconds=TARGET)
    assert bounded.size == 200
    assert run(bounded, fixed=0.01, each=1e-9, batches=10).size == 200


def test_without_lag_it_stays_as_it_is() -> None:
    assert run(FIRST, fixed=0.01, each=1e-6, batches=10, lag=500).size == 10_000


def test_a_slow_first_batch_is_the_workers_start_and_not_the_handler() -> None:
    assert FIRST.after(10_000, 4.0).size == 20_000
    assert FIRST.after(10_000, 0.9).size == 20_000
    assert FIRST.after(10_000, 0.6).size == 30_000
    assert FIRST.after(10_000, 0.5).size == 40_000, "so quick that four times as many records are within the limit"
    assert FIRST.after(10_000, 0.25).size == 80_000
    assert FIRST.after(10_000, 0.0).size == FIRST.after(10_000, 0.01).size == 160_000, "and at most that many at first"
    assert FIRST.after(10_000, 60.0).size == 10_000
    assert FIRST.after(10, 4.0).size == 10_000


def test_after_a_failure_it_is_not_as_bold_as_at_first() -> None:
    failed = run(FIRST, fixed=0.2, each=1e-5, batches=10).after_failure()
    assert failed.after(failed.size, 0.01).size == 4 * failed.size


def test_a_machine_that_takes_long_over_any_batch_is_not_given_ever_smaller_ones() -> None:
    size = run(FIRST, fixed=3.0, each=1e-6, batches=20)
    assert size.size > 100_000


def test_batches_that_the_limit_does_not_end_do_not_shrink_it_however_long_they_take() -> None:
    size = replace(FIRST, warm=True)
    for seconds in (9.0, 25.0, 14.0, 9.5, 21.0, 17.0, 12.0, 25.0) * 4:
        size = size.after(2_000, seconds)
        assert size.size == 10_000


def test_on_a_busy_machine_smaller_batches_that_take_as_long_are_given_up() -> None:
    for seed in range(20):
        chance, size, sizes = Random(seed), FIRST, []
        for _ in range(60):
            size = size.after(size.size, chance.uniform(9, 25) + 1e-5 * size.size)
            sizes.append(size.size)
        # With nothing but chance in it a batch of 900,000 would do as much work as it costs in any case.
        assert median(sizes[20:]) > 400_000
        assert min(sizes[20:]) > 50_000


def test_the_cost_of_an_offset_is_kept_while_all_batches_have_the_same_size() -> None:
    size, sizes = FIRST, []
    for _ in range(80):
        size = size.after(size.size, 9 + 1e-5 * size.size)
        sizes.append(size.size)
    # A smaller batch is tried now and then, because these take longer than they should.
    assert sum(each > 800_000 for each in sizes[20:]) >= 50


def test_of_several_sources_one_that_has_caught_up_does_not_keep_the_others_small() -> None:
    size = replace(FIRST, warm=True)
    assert size.is_filled_by(5_000, parts=2)
    assert not size.is_filled_by(4_000, parts=2)
    assert size.after(5_100, 0.1, is_full=size.is_filled_by(5_000, parts=2)).size == 40_000


def test_a_handler_that_becomes_ten_times_as_slow_gets_smaller_batches_at_once() -> None:
    steady = run(FIRST, fixed=0.2, each=1e-5, batches=20)
    slower = run(steady, fixed=2.0, each=1e-4, batches=12)
    assert 2.0 + 1e-4 * slower.size < 3 * TARGET
    assert run(slower, fixed=0.2, each=1e-5, batches=20).size > 0.9 * steady.size


def test_one_odd_batch_does_not_throw_it_about() -> None:
    steady = run(FIRST, fixed=0.2, each=1e-5, batches=10)
    after = steady.after(steady.size, 600.0)
    assert after.size >= steady.size // 4
    assert run(after, fixed=0.2, each=1e-5, batches=12).size > steady.size // 2


def test_each_failure_halves_it_and_success_brings_it_back() -> None:
    steady = run(FIRST, fixed=0.2, each=1e-5, batches=10)
    failed = steady.after_failure()
    assert failed.size == steady.size // 2
    assert failed.after_failure().size == steady.size // 4
    assert run(failed, fixed=0.2, each=1e-5, batches=4).size > 0.9 * steady.size
    for _ in range(40):
        failed = failed.after_failure()
    assert failed.size == 1


@given(
    most=st.integers(1, 10**7),
    steps=st.lists(st.none() | st.tuples(st.floats(0, 1), st.floats(0, 1e6)), max_size=60),
)
def test_the_batch_size_always_stays_within_its_bounds_and_changes_in_steps(
    most: int, steps: list[tuple[float, float] | None]
) -> None:
    size = BatchSize(10_000, most=most, seconds=TARGET)
    for step in steps:
        before, most_growth = size.size, 4 if size.seen else 16
        size = size.after_failure() if step is None else size.after(int(step[0] * size.size), step[1])
        assert 1 <= size.size <= most
        assert before // 4 <= size.size <= before * most_growth
        if step is None:
            assert size.size == max(1, before // 2)


@given(
    fixed=st.floats(0.01, 1.0),
    each=st.floats(1e-6, 0.05),
    first=st.integers(1, 100_000),
)
def test_on_a_steady_machine_batches_come_near_the_target(fixed: float, each: float, first: int) -> None:
    size = run(BatchSize(first, most=10**9, seconds=TARGET), fixed=fixed, each=each, batches=25)
    took = fixed + each * size.size
    assert 0.5 * TARGET - each <= took <= 1.5 * TARGET + each
