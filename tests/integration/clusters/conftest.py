"""Spark on clusters of several processes, and an app for them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_helpers import MakeTopic, produce
from shipped_app import RECORDS, Shop
from standalone import StandaloneCluster
from yarn import YarnCluster


# Idle servers still use the processor, so these clusters end with their last test.
@pytest.fixture(scope="package")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    """A master and two workers; started for the first test that asks."""
    with StandaloneCluster(tmp_path_factory.mktemp("standalone")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YarnCluster]:
    """A resource manager and two node managers; started for the first test that asks."""
    with YarnCluster(tmp_path_factory.mktemp("yarn")) as cluster:
        yield cluster


@pytest.fixture
def shop(tmp_path: Path, brokers: str, group: str, make_topic: MakeTopic) -> Shop:
    source = make_topic(4)
    for partition in range(4):
        produce(brokers, source, range(partition, RECORDS, 4), partition=partition)
    return Shop(tmp_path / "somewhere", brokers, group, source)
