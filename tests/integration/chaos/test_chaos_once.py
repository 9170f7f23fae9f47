"""The short form of `make chaos-once`: each output once, each row once, under kills and freezes."""

import secrets
from pathlib import Path

import pytest

from chaos_once.chaos_once_run import ChaosOnceRun, Options

pytestmark = pytest.mark.long


@pytest.mark.parametrize("sink", ["exactly-once", "postgresql"])
def test_every_promise_holds_while_instances_are_killed_and_frozen(brokers: str, tmp_path: Path, sink: str) -> None:
    options = Options(
        sink=sink,
        members=("self-managed", "native"),
        records=4_000,
        faults=2,
        bounces=1,
        restarts=0,
        concurrency=32,
        seconds=600,
        seed=secrets.randbelow(10**6),
    )
    outcome = ChaosOnceRun(brokers, tmp_path, options, tell=lambda _text, _arrived: None).run()
    assert not outcome.problems, f"seed {options.seed}"
    assert outcome.figures["kill"], "without it, the run would prove nothing"
