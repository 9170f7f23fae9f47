"""A cluster with a broker down: partitions without a leader are shown as dead, and everything else is shown."""

import os
import signal
from typing import Any

import pytest
from confluent_kafka.admin import NewTopic

from cli_helpers import Penstock, set_offsets
from kafka_helpers import WAIT_SECONDS, produce, wait_for
from penstock.devkit import Embedded
from penstock.kafka import Cluster

# For one request to a broker, on a very busy machine.
ASK_SECONDS = 120


def test_one_dead_partition_does_not_break_the_view(
    three: Embedded, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], group: str
) -> None:
    brokers = str(three.status().bootstrap)
    cluster = Cluster(brokers)
    topic = "one-replica-each"
    # Each partition has only one replica, so a dead broker makes one partition unavailable.
    new = NewTopic(topic, num_partitions=3, replica_assignment=[[1], [2], [3]])
    cluster.admin.create_topics([new], request_timeout=ASK_SECONDS)[topic].result(WAIT_SECONDS)
    for partition in range(3):
        produce(brokers, topic, range(5), partition=partition)
    set_offsets(cluster, group, {(topic, partition): 2 for partition in range(3)})
    coordinator = wait_for(lambda: _coordinator(cluster, group), "the coordinator")
    lost = next(each for each in three.status().brokers if each.id != coordinator)
    assert lost.pid is not None
    os.kill(lost.pid, signal.SIGKILL)
    dead_partition = lost.id - 1
    penstock = Penstock(brokers, monkeypatch, capsys)

    def shown() -> list[dict[str, Any]]:
        return list(penstock.json("lag", group, ok=False)["groups"][0].get("partitions", [{"lag": 0}] * 3))

    def dead() -> bool:
        found = cluster.admin.list_topics(topic, timeout=WAIT_SECONDS).topics[topic].partitions
        return found[dead_partition].leader == -1

    # The brokers notice it after some seconds. The command costs much more than the question.
    wait_for(dead, "the partition to be dead")
    # Another broker may learn of it a moment later.
    wait_for(lambda: shown()[dead_partition]["lag"] is None, "the command to show it")
    parts = shown()
    assert [each["lag"] for each in parts] == [None if at == dead_partition else 3 for at in range(3)]
    assert f"{topic}-{dead_partition}" in parts[dead_partition]["reason"]
    assert f"{topic}-{dead_partition}" in penstock("groups", "describe", group).err


def _coordinator(cluster: Cluster, group: str) -> int:
    asked = cluster.admin.describe_consumer_groups([group], request_timeout=ASK_SECONDS)
    return int(asked[group].result(WAIT_SECONDS).coordinator.id)
