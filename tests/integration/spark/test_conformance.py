"""The scenarios of ``conformance``, on a real Spark: what holds on the local engine holds here."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from conformance.scenarios import Scenario, scenarios_on
from conformance.spark_driver import SparkDriver
from kafka_helpers import MakeTopic
from penstock.kafka import Cluster


@pytest.mark.parametrize("play", scenarios_on("spark"), ids=lambda play: play.__name__)
def test_on_spark(
    play: Scenario, brokers: str, cluster: Cluster, make_topic: MakeTopic, tmp_path: Path, spark: SparkSession
) -> None:
    play(SparkDriver(brokers, cluster, make_topic, tmp_path, spark))
