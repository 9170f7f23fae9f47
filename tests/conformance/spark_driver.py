"""The Spark engine for scenarios: on a real Spark, or with its slices on threads of this process."""

import threading
from collections.abc import Callable
from pathlib import Path

from conformance.drivers import BrokerDriver, BrokerStage, Stage
from kafka_helpers import WAIT_SECONDS, MakeTopic, wait_for
from penstock import App
from penstock.core.reports.events import Event
from penstock.kafka import Cluster

RunOnSpark = Callable[..., list[Event]]
"""Runs an app with ``brokers``, ``stop`` and other options of ``penstock.spark.run``; returns what it reported."""


class SparkDriver(BrokerDriver):
    reports_records = True
    commits_batches = False

    def __init__(
        self, brokers: str, cluster: Cluster, make_topic: MakeTopic, folder: Path, run_on_spark: RunOnSpark
    ) -> None:
        super().__init__(brokers, cluster, make_topic, folder)
        self._run_on_spark = run_on_spark

    def stage(self, app: App) -> Stage:
        return _SparkStage(app, self, self._run_on_spark)


class _SparkStage(BrokerStage):
    def __init__(self, app: App, driver: BrokerDriver, run_on_spark: RunOnSpark) -> None:
        super().__init__(app, driver)
        self._run_on_spark = run_on_spark

    def catch_up(self) -> list[Event]:
        return self._run(threading.Event(), until_caught_up=True)

    def run_until(self, condition: Callable[[], bool]) -> None:
        stop = threading.Event()
        thread = threading.Thread(target=self._run, args=(stop,), daemon=True)
        thread.start()
        try:
            wait_for(condition, "the scenario's condition")
        finally:
            stop.set()
            thread.join(WAIT_SECONDS)
        assert not thread.is_alive(), "the engine did not stop"

    def _run(self, stop: threading.Event, *, until_caught_up: bool = False) -> list[Event]:
        return self._run_on_spark(
            self.app, brokers=self.brokers, stop=stop, until_caught_up=until_caught_up, per_record=True
        )
