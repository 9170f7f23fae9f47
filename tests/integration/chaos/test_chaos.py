"""The short form of `make chaos`: half a minute of faults on every test run."""

import secrets
from pathlib import Path

import pytest

from chaos.bout import Options, bout
from chaos.checker import report


# Its own waits are bounded by less.
@pytest.mark.timeout(300)
def test_every_promise_holds_while_members_come_leave_freeze_and_are_killed(brokers: str, tmp_path: Path) -> None:
    options = Options(records=30_000, seconds=30, seed=secrets.randbelow(1_000_000))
    outcome = bout(brokers, tmp_path, options, tell=lambda _text, _committed: None)
    assert not outcome.violations, f"seed {options.seed}\n{report(outcome.violations)}"
    # A run without these would have shown nothing.
    assert outcome.figures["finished"] == 30_000
    assert all(outcome.figures[kind] for kind in ("kills", "freezes", "leaves", "joins")), outcome.figures
    assert outcome.figures["finished after the last fault began"] > 0
