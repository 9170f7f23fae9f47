"""The decision after a failed attempt."""

import pickle

import pytest

from penstock import NO_RETRY, Reject, Retry
from penstock.core.failures.outcome import (
    DependencyUnavailable,
    Failed,
    Halt,
    Postpone,
    ToDeadLetter,
    TryAgain,
    Undecodable,
    WorkerDied,
    decide,
    failed,
)

THREE = Retry(attempts=3, first="1s", jitter=0)


def decide_after(
    failure: Failed, attempt: int, *, dead_letter: bool = True, retry_topics: tuple[float, ...] = ()
) -> TryAgain | Postpone | ToDeadLetter | Halt:
    return decide(failure, attempt=attempt, has_dead_letter=dead_letter, random=lambda: 0.9, retry_topics=retry_topics)


def test_an_ordinary_error_is_retried_then_dead_lettered() -> None:
    failure = failed(OSError("away"), THREE)
    assert decide_after(failure, 1) == TryAgain(1.0)
    assert decide_after(failure, 2) == TryAgain(2.0)
    assert decide_after(failure, 3) == ToDeadLetter()


@pytest.mark.parametrize("attempt", [1, 3, 1000])
@pytest.mark.parametrize("dead_letter", [True, False])
def test_a_lane_waits_for_an_unavailable_dependency_without_a_limit(attempt: int, *, dead_letter: bool) -> None:
    failure = failed(DependencyUnavailable("the registry does not answer", 5.0), NO_RETRY)
    assert not failure.final
    decision = decide_after(failure, attempt, dead_letter=dead_letter, retry_topics=(1.0, 60.0))
    assert isinstance(decision, TryAgain)
    assert 5.0 <= decision.delay <= 6.0, "it would still be unavailable earlier"


@pytest.mark.parametrize("error", [Reject("never"), Undecodable("not JSON")])
def test_a_final_error_is_not_retried(error: Exception) -> None:
    assert decide_after(failed(error, THREE), 1) == ToDeadLetter()


def test_without_a_dead_letter_topic_the_app_halts() -> None:
    assert decide_after(failed(Reject("never")), 1, dead_letter=False) == Halt()
    assert decide_after(failed(OSError(), THREE), 3, dead_letter=False) == Halt()


def test_the_type_of_an_error_decides_how_often_it_is_tried() -> None:
    policy = {TimeoutError: Retry(attempts=10, first="5s", jitter=0), ValueError: NO_RETRY}
    assert decide_after(failed(TimeoutError(), policy), 9) == TryAgain(60.0)
    assert decide_after(failed(KeyError(), policy), 3) == ToDeadLetter()  # not listed: Retry()
    never = failed(UnicodeError(), policy)  # which is a ValueError
    assert never.final, "so the rest of its run need not wait for a decision"
    assert decide_after(never, 1) == ToDeadLetter()


def test_the_chosen_retry_survives_pickling_and_the_error_is_left_out() -> None:
    class Local(Exception):  # noqa: N818 - it cannot be pickled, like many errors of users
        pass

    failure = failed(Local("x"), {Exception: THREE})
    assert pickle.loads(pickle.dumps(failure)) == failure
    assert failure.retry == THREE


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        ("59s", TryAgain(59.0)),  # too short for a topic
        ("60s", Postpone(60.0)),
        ("9m", Postpone(60.0)),  # between two: the shorter
        ("10m", Postpone(600.0)),
        ("2h", Postpone(600.0)),  # longer than any
    ],
)
def test_a_long_wait_is_spent_in_the_longest_retry_topic_that_is_not_above_it(
    first: str, expected: TryAgain | Postpone
) -> None:
    failure = failed(OSError(), Retry(first=first, limit="1d", jitter=0))
    assert decide_after(failure, 1, retry_topics=(60.0, 600.0)) == expected


def test_jitter_does_not_decide_whether_a_lane_is_held() -> None:
    failure = failed(OSError(), Retry(first="1m", limit="1m", jitter=1))
    assert decide_after(failure, 1) == TryAgain(108.0)
    assert decide_after(failure, 1, retry_topics=(60.0,)) == Postpone(60.0)
    assert decide_after(failure, 1, retry_topics=(61.0,)) == TryAgain(108.0)


def test_the_last_attempt_and_what_is_final_do_not_wait_in_a_retry_topic() -> None:
    retry = Retry(attempts=2, first="1m", limit="1m")
    assert decide_after(failed(OSError(), retry), 2, retry_topics=(60.0,)) == ToDeadLetter()
    assert decide_after(failed(Reject(), retry), 1, retry_topics=(60.0,)) == ToDeadLetter()


def test_errors_are_named_as_a_reader_would_name_them() -> None:
    assert failed(ValueError("x")) == Failed("ValueError", "x")
    assert failed(Reject("why")) == Failed("Reject", "why", final=True)
    assert failed(WorkerDied("killed")).error_type == "WorkerDied"
    assert failed(pytest.UsageError("x")).error_type == "pytest.UsageError"


def test_an_error_that_cannot_be_printed_is_still_a_failure() -> None:
    class Broken(Exception):  # noqa: N818
        def __str__(self) -> str:
            raise RuntimeError

    assert "could not be printed: RuntimeError" in failed(Broken()).message
