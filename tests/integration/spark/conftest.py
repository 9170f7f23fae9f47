"""Apps on the one Spark session of the test run."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock import App
from penstock import spark as engine
from penstock.core.events import Event
from standalone import StandaloneCluster

CatchUp = Callable[..., list[Event]]


@pytest.fixture
def catch_up(brokers: str, spark: SparkSession) -> CatchUp:
    """Run an app on Spark until it has caught up; returns what it reported."""

    def run(app: App, **options: Any) -> list[Event]:
        seen: list[Event] = []
        engine.run(
            app,
            brokers=brokers,
            emit=seen.append,
            stop=threading.Event(),
            until_caught_up=True,
            session=spark,
            **options,
        )
        return seen

    return run


@pytest.fixture(scope="session")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    """A Spark cluster of a master and two workers; started for the first test that asks."""
    with StandaloneCluster(tmp_path_factory.mktemp("standalone")) as cluster:
        yield cluster
