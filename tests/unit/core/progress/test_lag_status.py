"""Burrow's rules: the cases of its own tests, and cases that Burrow gets wrong."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.progress.lag_status import CommitSeen, Silence, Status, evaluate, thinned, worst

MOVING = (1000, 2000, 3000, 4000, 5000)
STANDING = (1000,) * 5


def commits(offsets: tuple[int, ...], lags: tuple[int | None, ...], *, every: float = 100.0) -> list[CommitSeen]:
    return [
        CommitSeen(every * (at + 1), offset, lag) for at, (offset, lag) in enumerate(zip(offsets, lags, strict=True))
    ]


LATE = [CommitSeen(1512224618.356 + second, 792748079 + second, 0) for second in range(15)]


@pytest.mark.parametrize(
    ("window", "lag", "now", "recent_ends", "expected"),
    [
        pytest.param(commits(MOVING, (0, 50, 100, 150, 200)), 200, 600, [5200], Status.OK, id="lag was zero once"),
        pytest.param(commits(MOVING, (0, 50, 100, 150, 200)), 200, 900, [5200], Status.OK, id="silent just as long"),
        pytest.param(commits(MOVING, (0, 50, 100, 150, 200)), 200, 1000, [5200], Status.STOP, id="silent for longer"),
        pytest.param(commits(MOVING, (50, 100, 150, 200, 250)), 250, 1000, [5250], Status.STOP, id="silent, with lag"),
        pytest.param(commits(STANDING, (0, 50, 100, 150, 200)), 200, 600, [1200], Status.OK, id="stands since zero"),
        pytest.param(commits(STANDING, (100, 150, 200, 250, 300)), 300, 600, [1300], Status.STALL, id="stands"),
        pytest.param(commits(STANDING, (100,) * 5), 100, 600, [1100], Status.STALL, id="stands, lag stays"),
        pytest.param(
            commits((1000, 2000, 3000, 2000, 4000), (100, 150, 200, 1250, 300)),
            300,
            600,
            [4300],
            Status.REWIND,
            id="went back",
        ),
        pytest.param(commits(MOVING, (50, 100, 150, 200, 250)), 0, 1000, [5250], Status.OK, id="no lag now"),
        pytest.param(
            LATE, 931, 1512224650, [792749024, 792749000, 792748800], Status.STOP, id="new records, and silence"
        ),
        pytest.param(LATE, 1, 1512224650, [792748094, 792748093, 792748093], Status.OK, id="a record of just now"),
        pytest.param(
            commits((1000, 1500, 2000, 2500, 3000), (0, None, 50, None, 100)),
            200,
            600,
            [5700],
            Status.OK,
            id="unknown lags",
        ),
        pytest.param(commits(MOVING, (100, 200, 300, 400, 500)), 500, 600, [5500], Status.WARN, id="lag grows"),
        pytest.param(commits(MOVING, (100, 200, 150, 400, 500)), 500, 600, [5500], Status.OK, id="lag shrank once"),
    ],
)
def test_the_published_cases(
    window: list[CommitSeen], lag: int, now: float, recent_ends: list[int], expected: Status
) -> None:
    assert evaluate(window, lag=lag, now=now, recent_ends=recent_ends).status is expected


@pytest.mark.parametrize("count", [1, 2])
def test_a_window_of_one_or_two_commits_looks_neither_stopped_nor_stalled(count: int) -> None:
    window = commits((1000,) * count, (100,) * count)
    verdict = evaluate(window, lag=100, now=1_000_000, recent_ends=[1100])
    assert verdict.status is Status.OK
    assert "too few" in verdict.reason


def test_no_commit_in_all_of_a_window_that_was_read_is_a_stop_if_there_was_lag_all_the_while() -> None:
    assert evaluate([], lag=5, now=0, silence=Silence(300, lag=3)).status is Status.STOP
    assert evaluate([], lag=5, now=0, silence=Silence(300, lag=0)).status is Status.OK
    assert evaluate([], lag=5, now=0).status is Status.OK


def test_a_commit_point_that_stands_while_records_above_it_finish_is_no_stall() -> None:
    window = [CommitSeen(100.0 * at, 1000, 500 - at, finished_above=at) for at in range(1, 6)]
    assert evaluate(window, lag=495, now=600, recent_ends=[1500]).status is Status.OK


def test_the_worst_counts_and_nothing_is_fine() -> None:
    assert worst([Status.OK, Status.STALL, Status.WARN]) is Status.STALL
    assert worst([]) is Status.OK


@given(st.lists(st.integers(0, 50), min_size=1, max_size=80), st.integers(2, 12))
def test_thinning_keeps_the_ends_and_every_step_back(offsets: list[int], most: int) -> None:
    window = [CommitSeen(float(at), offset) for at, offset in enumerate(offsets)]
    kept = thinned(window, most)
    assert kept[0] == window[0]
    assert kept[-1] == window[-1]
    assert kept == sorted(kept, key=lambda each: each.at)
    went_back = any(later < earlier for earlier, later in itertools.pairwise(offsets))
    assert went_back == any(later.offset < earlier.offset for earlier, later in itertools.pairwise(kept))
