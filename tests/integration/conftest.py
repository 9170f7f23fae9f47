"""Fixtures of the integration tests: one real broker for the whole run, one Spark session, and unique names."""

import os
import threading
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from jvms import QUICK_OPTIONS, SPARK_PACKAGES
from kafka_helpers import CatchUp, MakeTopic
from penstock import App
from penstock import spark as engine
from penstock.core.reports.events import Event
from penstock.devkit import Embedded, UpOptions, up_plan
from penstock.devkit.ports import choose_port
from penstock.kafka import Cluster
from penstock.spark.session.spark_session import spark_session
from postgres import Postgres
from servers import SharedServers
from tls_servers import SecureBroker, secure_broker

# Drivers in this process and in every `penstock run` of a test read this.
os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK_OPTIONS)


@pytest.fixture(scope="session", autouse=True)
def _registry_port() -> None:
    """Each process of tests has a registry of its own.

    On a common port, another one could answer for one that a test has killed or frozen.
    """
    up_plan.DEFAULT_REGISTRY_PORT = choose_port([])


@pytest.fixture(scope="session")
def shared_servers() -> SharedServers:
    """Servers that tests may kill and freeze, but must leave running."""
    return SharedServers()


@pytest.fixture(autouse=True)
def _all_run_again(shared_servers: SharedServers) -> Iterator[None]:
    """Start all servers again for the next test. A test that left one dead or frozen fails."""
    yield
    revived = shared_servers.revive()
    assert not revived, f"{', '.join(revived)} did not run after this test, and was started again"


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory, shared_servers: SharedServers) -> Iterator[Embedded]:
    """The one cluster of this test run."""
    kafka = Embedded(tmp_path_factory.mktemp("kafka"))
    try:
        kafka.up(UpOptions(port=0))
        shared_servers.watch(kafka)
        yield kafka
    finally:
        shared_servers.forget(kafka)
        kafka.down()


@pytest.fixture(scope="session")
def brokers(kafka: Embedded) -> str:
    """The one broker of this test run."""
    return str(kafka.bootstrap())


@pytest.fixture(scope="session")
def registry(kafka: Embedded, shared_servers: SharedServers) -> str:
    """The URL of a schema registry beside the broker; started for the first test that asks."""
    status = kafka.up(UpOptions(registry=True)).registry
    shared_servers.watch(kafka)
    assert status is not None
    return status.url


@pytest.fixture(scope="session")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    """A broker that speaks TLS, with and without certificates of clients; started for the first test that asks."""
    with secure_broker(tmp_path_factory.mktemp("secure")) as broker:
        yield broker


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of this test run, with the jars for all sinks."""
    with spark_session("tests", master="local[2]", packages=SPARK_PACKAGES) as session:
        # Delta reads its log in 50 tasks, even if it is short.
        session.conf.set("spark.databricks.delta.snapshotPartitions", "2")
        # To plan a query again while it runs, and to compile it, takes longer than a query over ten rows. Without
        # compilers, the JVM needs an eighth less processor time.
        session.conf.set("spark.sql.adaptive.enabled", "false")
        session.conf.set("spark.sql.codegen.wholeStage", "false")
        session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        yield session


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


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    yield server
    server.stop()


@pytest.fixture
def cluster(brokers: str) -> Cluster:
    return Cluster(brokers)


@pytest.fixture
def group() -> str:
    return f"group-{uuid4().hex[:8]}"


@pytest.fixture
def make_topic(cluster: Cluster) -> MakeTopic:
    """Creates topics with unique names."""

    def make(partitions: int = 1, **config: str) -> str:
        name = f"topic-{uuid4().hex[:8]}"
        cluster.create_topics([name], partitions=partitions, config=config)
        return name

    return make
