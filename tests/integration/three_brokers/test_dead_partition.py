"""A cluster with a broker down: partitions without a leader are shown as dead, and everything else is shown."""

import os
import signal
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import NewTopic

from cli_helpers import Penstock, set_offsets
from kafka_helpers import WAIT_SECONDS, produce, wait_for
from penstock.devkit import Embedded, UpOptions
from penstock.kafka import Cluster


@pytest.fixture
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    embedded = Embedded(tmp_path_factory.mktemp("dead-partition"))
    embedded.up(UpOptions(brokers=3, port=0))
    try:
        yield embedded
    finally:
        embedded.down()


def test_one_dead_partition_does_not_break_the_view(
    kafka: Embedded, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], group: str
) -> None:
    brokers = str(kafka.status().bootstrap)
    cluster = Cluster(brokers)
    topic = "one-replica-each"
    # Each partition has only one replica, so a dead broker makes one partition unavailable.
    cluster.admin.create_topics([NewTopic(topic, num_partitions=3, replica_assignment=[[1], [2], [3]])])[topic].result(
        20
    )
    for partition in range(3):
        produce(brokers, topic, range(5), partition=partition)
    set_offsets(cluster, group, {(topic, partition): 2 for partition in range(3)})
    coordinator = wait_for(lambda: _coordinator(cluster, group), "the coordinator")
    lost = next(each for each in kafka.status().brokers if each.id != coordinator)
    assert lost.pid is not None
    os.kill(lost.pid, signal.SIGKILL)
    dead_partition = lost.id - 1
    penstock = Penstock(brokers, monkeypatch, capsys)

    def dead() -> bool:
        found = penstock.json("lag", group, ok=False)["groups"][0]
        parts = found.get("partitions", [])
        return bool(parts) and parts[dead_partition]["lag"] is None

    wait_for(dead, "the partition to be dead")
    parts = penstock.json("lag", group, ok=False)["groups"][0]["partitions"]
    assert [each["lag"] for each in parts] == [None if at == dead_partition else 3 for at in range(3)]
    assert f"{topic}-{dead_partition}" in parts[dead_partition]["reason"]
    assert f"{topic}-{dead_partition}" in penstock("groups", "describe", group).err


def _coordinator(cluster: Cluster, group: str) -> int:
    return int(cluster.admin.describe_consumer_groups([group])[group].result(WAIT_SECONDS).coordinator.id)
