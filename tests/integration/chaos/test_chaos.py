"""The short form of `make chaos`: half a minute of faults on every test run."""

import json
import secrets
from pathlib import Path

import pytest

from chaos.chaos_run import Options, run_chaos, suited
from chaos.checker import report

pytestmark = pytest.mark.long

SHORT = ("kill", "leave", "join")


def test_every_promise_holds_while_members_come_leave_freeze_and_are_killed(brokers: str, tmp_path: Path) -> None:
    options = Options(records=30_000, seconds=30, seed=secrets.randbelow(1_000_000))
    outcome = run_chaos(brokers, tmp_path, options, tell=lambda _text, _committed: None)
    assert not outcome.violations, f"seed {options.seed}\n{report(outcome.violations)}"
    # Without these, the run would prove nothing.
    assert outcome.figures["finished"] == 30_000
    assert all(outcome.figures[kind] for kind in ("kills", "freezes", "leaves", "joins")), outcome.figures
    assert outcome.figures["finished after the last fault began"] > 0


def test_every_promise_holds_in_a_group_with_an_assignor_that_a_user_wrote(brokers: str, tmp_path: Path) -> None:
    options = Options(records=6_000, seconds=6, seed=secrets.randbelow(1_000_000), members=("own",), faults=SHORT)
    outcome = run_chaos(brokers, tmp_path, options, tell=lambda _text, _committed: None)
    assert not outcome.violations, f"seed {options.seed}\n{report(outcome.violations)}"
    assert outcome.figures["finished"] == 6_000
    assert _strategies(tmp_path) == {"take-turns"}


@pytest.mark.parametrize("strategy", ["cooperative-sticky", "sticky"])
def test_self_managed_and_native_members_and_java_consumers_share_a_group_and_keep_its_promises(
    brokers: str, tmp_path: Path, strategy: str
) -> None:
    # librdkafka has no eager sticky assignor. With this strategy all members but Java's are self-managed.
    members = suited(("java", "self-managed", "native"))
    options = Options(records=6_000, seconds=6, seed=secrets.randbelow(1_000_000), strategy=strategy, **members)
    outcome = run_chaos(brokers, tmp_path, options, tell=lambda _text, _committed: None)
    assert not outcome.violations, f"seed {options.seed}\n{report(outcome.violations)}"
    assert outcome.figures["finished"] == 6_000
    reported = {process: {entry.kind for entry in entries} for process, entries in outcome.history.files.items()}
    assert all("finished" in reported[process] for process in ("p01", "p02", "p03")), "each kind of member has worked"
    assert _strategies(tmp_path) == {strategy}


def _strategies(folder: Path) -> set[str]:
    """The assignors that the members report."""
    reported = [line for path in folder.glob("*.events.jsonl") for line in path.read_text().splitlines()]
    events = [json.loads(line) for line in reported if '"rebalanced"' in line]
    return {event["rebalance"]["strategy"] for event in events if event.get("event") == "rebalanced"}
