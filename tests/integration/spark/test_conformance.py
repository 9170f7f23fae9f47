"""The scenarios of ``conformance`` hold on the Spark engine too, on threads and on a real Spark."""

import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from conformance.scenarios import Scenario, scenarios_on
from conformance.spark_driver import SparkDriver
from kafka_helpers import MakeTopic
from penstock import App
from penstock import spark as engine
from penstock.core.reports.events import Event
from penstock.kafka import Cluster
from thread_jobs import run_on_threads


@pytest.mark.parametrize("play", scenarios_on("spark"), ids=lambda play: play.__name__)
def test_with_slices_on_threads(
    play: Scenario,
    brokers: str,
    cluster: Cluster,
    make_topic: MakeTopic,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run(app: App, **options: Any) -> list[Event]:
        return run_on_threads(app, options.pop("brokers"), options.pop("stop"), patch=monkeypatch, **options)

    play(SparkDriver(brokers, cluster, make_topic, tmp_path, run))


@pytest.mark.parametrize("play", scenarios_on("spark"), ids=lambda play: play.__name__)
def test_on_spark(
    play: Scenario, brokers: str, cluster: Cluster, make_topic: MakeTopic, tmp_path: Path, spark: SparkSession
) -> None:
    def run(app: App, *, stop: threading.Event, **options: Any) -> list[Event]:
        seen: list[Event] = []
        engine.run(app, emit=seen.append, stop=stop, session=spark, **options)
        return seen

    play(SparkDriver(brokers, cluster, make_topic, tmp_path, run))
