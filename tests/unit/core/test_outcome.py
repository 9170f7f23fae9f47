"""What follows from a failed attempt."""

import pytest

from penstock import Reject, Retry
from penstock.core.outcome import Failed, Halt, ToDeadLetter, TryAgain, Undecodable, decide, failed


def decide_after(failure: Failed, attempt: int, *, dead_letter: bool = True) -> TryAgain | ToDeadLetter | Halt:
    retry = Retry(attempts=3, first="1s", jitter=0)
    return decide(failure, attempt=attempt, retry=retry, has_dead_letter=dead_letter, random=lambda: 0.5)


def test_an_ordinary_error_is_retried_then_dead_lettered() -> None:
    failure = failed(OSError("away"))
    assert decide_after(failure, 1) == TryAgain(1.0)
    assert decide_after(failure, 2) == TryAgain(2.0)
    assert decide_after(failure, 3) == ToDeadLetter()


@pytest.mark.parametrize("error", [Reject("never"), Undecodable("not JSON")])
def test_a_final_error_is_not_retried(error: Exception) -> None:
    assert decide_after(failed(error), 1) == ToDeadLetter()


def test_without_a_dead_letter_topic_the_app_halts() -> None:
    assert decide_after(failed(Reject("never")), 1, dead_letter=False) == Halt()
    assert decide_after(failed(OSError()), 3, dead_letter=False) == Halt()


def test_errors_are_named_as_a_reader_would_name_them() -> None:
    assert failed(ValueError("x")) == Failed("ValueError", "x")
    assert failed(Reject("why")) == Failed("Reject", "why", final=True)
    assert failed(pytest.UsageError("x")).error_type == "pytest.UsageError"


def test_an_error_that_cannot_be_printed_is_still_a_failure() -> None:
    class Broken(Exception):  # noqa: N818
        def __str__(self) -> str:
            raise RuntimeError

    assert "could not be printed: RuntimeError" in failed(Broken()).message
