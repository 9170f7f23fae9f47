"""The short form of `make chaos-spark`: an executor and a driver are killed on every test run."""

import secrets
from pathlib import Path

import pytest

from chaos_spark.chaos_spark_run import ChaosSparkRun, Options
from standalone import StandaloneCluster

pytestmark = pytest.mark.long


def test_each_output_is_there_once_though_an_executor_and_a_driver_were_killed(
    brokers: str, standalone: StandaloneCluster, tmp_path: Path
) -> None:
    seed = secrets.randbelow(1_000_000)
    options = Options(records=10_000, executor_kills=1, driver_kills=1, seconds=600, seed=seed)
    outcome = ChaosSparkRun(brokers, standalone, tmp_path, options, tell=lambda _text, _committed: None).run()
    assert not outcome.problems, f"seed {seed}: {outcome.problems}"
    # Without these, the run would prove nothing.
    assert (outcome.figures["outputs"], outcome.figures["records"]) == (10_000, 10_000)
    assert (outcome.figures["executors killed"], outcome.figures["drivers killed"]) == (1, 1)
