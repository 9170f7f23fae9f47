"""The actions of scenarios on the Spark engine."""

import threading
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from conformance.drivers import BrokerDriver, BrokerStage, Stage
from kafka_helpers import WAIT_SECONDS, MakeTopic, wait_for
from penstock import App
from penstock import spark as engine
from penstock.core.reports.events import Event
from penstock.kafka import Cluster


class SparkDriver(BrokerDriver):
    tells_of_records = False
    commits_batches = True

    def __init__(
        self, brokers: str, cluster: Cluster, make_topic: MakeTopic, folder: Path, session: SparkSession
    ) -> None:
        super().__init__(brokers, cluster, make_topic, folder)
        self._session = session

    def stage(self, app: App) -> Stage:
        return _SparkStage(app, self, self._session)


class _SparkStage(BrokerStage):
    def __init__(self, app: App, driver: BrokerDriver, session: SparkSession) -> None:
        super().__init__(app, driver)
        self._session = session

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
        seen: list[Event] = []
        engine.run(
            self.app,
            brokers=self.brokers,
            emit=seen.append,
            stop=stop,
            until_caught_up=until_caught_up,
            session=self._session,
        )
        return seen
