"""The test bed: one real broker for the whole run, three where asked, one Spark session, names of one's own."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from bed import MakeTopic
from penstock.devkit import Embedded, UpOptions
from penstock.kafka import Cluster
from penstock.spark.session import spark_session


def _cluster(folder: pytest.TempPathFactory, brokers: int) -> Iterator[str]:
    kafka = Embedded(folder.mktemp(f"kafka-{brokers}"))
    try:
        yield str(kafka.up(UpOptions(brokers=brokers, port=0)).bootstrap)
    finally:
        kafka.down()


@pytest.fixture(scope="session")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The one broker of this test run."""
    yield from _cluster(tmp_path_factory, 1)


@pytest.fixture(scope="session")
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster of three, with replication 3; started for the first test that asks."""
    yield from _cluster(tmp_path_factory, 3)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of this test run."""
    with spark_session("tests", master="local[2]") as session:
        yield session


@pytest.fixture
def cluster(brokers: str) -> Cluster:
    return Cluster(brokers)


@pytest.fixture
def group() -> str:
    return f"group-{uuid4().hex[:8]}"


@pytest.fixture
def make_topic(cluster: Cluster) -> MakeTopic:
    """A new topic with a name of its own."""

    def make(partitions: int = 1, **config: str) -> str:
        name = f"topic-{uuid4().hex[:8]}"
        cluster.create_topics([name], partitions=partitions, config=config)
        return name

    return make
