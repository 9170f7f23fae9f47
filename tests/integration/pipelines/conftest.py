"""Pipelines on the one Spark session of the test run, and what they wrote."""

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock import App
from penstock import spark as engine
from penstock.core.events import Event

CatchUp = Callable[..., list[Event]]
Rows = Callable[[DataFrame], list[dict[str, Any]]]


@pytest.fixture
def catch_up(brokers: str, spark: SparkSession) -> CatchUp:
    """Run an app on Spark until it has caught up, or over its range; returns what it reported."""

    def run(app: App, **options: Any) -> list[Event]:
        seen: list[Event] = []
        engine.run(
            app,
            brokers=brokers,
            emit=seen.append,
            stop=threading.Event(),
            until_caught_up="span" not in options,
            session=spark,
            **options,
        )
        return seen

    return run


@pytest.fixture
def rows() -> Rows:
    """The rows of a DataFrame; by the JVM itself, as PySpark leaves the sockets that it collects through to the GC."""
    return lambda table: [json.loads(text) for text in table._jdf.toJSON().collectAsList()]
