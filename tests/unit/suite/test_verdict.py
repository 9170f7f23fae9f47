"""When a run passes, when it fails, and which tests are flaky."""

import pytest

from suite.report import closing_line
from suite.verdict import Result, judge


def results(*outcomes: str) -> dict[str, Result]:
    return {f"t{number}": Result(f"t{number}", outcome, "1") for number, outcome in enumerate(outcomes)}


def test_a_test_that_passes_alone_is_flaky_and_the_run_stays_green() -> None:
    first = results("passed", "failed", "failed")
    verdict = judge(first, first, results("passed", "passed", "passed"))
    assert [each.test for each in verdict.flaky] == ["t1", "t2"]
    assert verdict.green
    assert closing_line([verdict]) == "3 passed, 0 failed"


def test_more_than_two_flaky_tests_make_it_red() -> None:
    first = results("failed", "failed", "failed")
    assert not judge(first, first, results("passed", "passed", "passed")).green


@pytest.mark.parametrize("again", [results("failed"), {}])
def test_a_test_that_fails_again_or_is_not_run_again_makes_it_red(again: dict[str, Result]) -> None:
    first = results("failed", "passed")
    verdict = judge(first, first, again)
    assert (verdict.green, verdict.flaky) == (False, ())
    assert closing_line([verdict, verdict]) == "2 passed, 2 failed"


def test_a_test_that_never_ran_is_a_failure() -> None:
    verdict = judge(["t0", "t1"], results("passed"), {})
    assert [each.test for each in verdict.failed] == ["t1"]
    assert not verdict.green


def test_a_fault_of_the_run_itself_and_a_run_of_nothing_are_red() -> None:
    assert not judge(["t0"], results("passed"), {}, problems=["a worker died"]).green
    assert not judge([], {}, {}).green
