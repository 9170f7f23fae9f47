"""What `penstock debug` prints about an attempt."""

import pytest

from penstock.cli.commands import debug
from penstock.core.failures.outcome import DONE, Delayed, Outcome, Skipped
from penstock.ops.debug_record import DebuggedAttempt

LATER = Delayed(600.0, 1_792_000_600.0, "not before noon")


def attempt_with(outcome: Outcome) -> DebuggedAttempt:
    return DebuggedAttempt(1, 0.1, outcome, "what follows", (), None)


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (LATER, "delayed until 2026-10-14T17:56:40.000Z: not before noon"),
        (Delayed(600.0, 1_792_000_600.0), "delayed until 2026-10-14T17:56:40.000Z"),
        (Skipped("test"), "skipped: test"),
        (DONE, "done"),
    ],
)
def test_the_outcome_of_an_attempt_says_until_when_it_is_delayed(outcome: Outcome, text: str) -> None:
    assert debug._outcome(attempt_with(outcome)) == text


def test_a_program_reads_until_when_an_attempt_is_delayed() -> None:
    shown = debug._attempt_as_json(attempt_with(LATER))
    assert {**shown, "outcome": "delayed", "until": 1_792_000_600.0, "delay_seconds": 600.0} == shown
    assert shown["reason"] == "not before noon"
