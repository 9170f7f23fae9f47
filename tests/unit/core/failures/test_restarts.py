"""When a failed query starts again."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.core.failures.restarts import DEFAULT_RESTART, Restarts
from penstock.core.failures.retry import Retry

MIDDLE = 0.5  # of the jitter


def test_waits_double_up_to_a_minute_and_the_tenth_failure_is_the_last() -> None:
    restarts = Restarts(DEFAULT_RESTART)
    assert [restarts.failed(MIDDLE) for _ in range(10)] == [1, 2, 4, 8, 16, 32, 60, 60, 60, None]


def test_progress_resets_the_count() -> None:
    restarts = Restarts(Retry(attempts=3))
    assert [restarts.failed(MIDDLE), restarts.failed(MIDDLE)] == [1, 2]
    restarts.progressed()
    assert restarts.failures == 0
    assert [restarts.failed(MIDDLE) for _ in range(3)] == [1, 2, None]


@given(st.lists(st.booleans(), max_size=60), st.integers(1, 12))
def test_it_ends_exactly_after_so_many_failures_without_progress(history: list[bool], attempts: int) -> None:
    restarts, in_a_row = Restarts(Retry(attempts=attempts)), 0
    for progressed in history:
        if progressed:
            restarts.progressed()
            in_a_row = 0
        else:
            in_a_row += 1
            assert (restarts.failed(MIDDLE) is None) == (in_a_row >= attempts)
