"""Errors that repeat many times a second are reported from time to time."""

from penstock.core.reports.repeated_errors import RepeatedErrors


def test_an_error_is_reported_at_once_and_then_once_in_ten_seconds_while_it_repeats() -> None:
    errors = RepeatedErrors()
    reported = [tenth / 10 for tenth in range(251) if errors.is_due("no broker", tenth / 10)]
    assert reported == [0.0, 10.0, 20.0]


def test_each_error_has_its_own_time() -> None:
    errors = RepeatedErrors()
    assert errors.is_due("no broker", 5.0)
    assert errors.is_due("no login", 5.1)
    assert not errors.is_due("no broker", 5.2)


def test_errors_that_all_differ_use_no_more_memory_and_are_all_reported() -> None:
    errors = RepeatedErrors()
    assert all(errors.is_due(f"error {number}", 1.0) for number in range(1_000))
    assert len(errors._reported) <= 100
