"""Runs the `penstock` command in this process, and makes members of groups that it can show."""

import json
import logging
import struct
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import Consumer, ShareConsumer
from confluent_kafka import TopicPartition as KafkaTopicPartition

from group_tool import GroupTool
from kafka_helpers import wait_for
from penstock.cli.entry_point import main
from penstock.core.progress.commit_log import COMMIT_LOG
from penstock.core.records.record import TopicPartition
from penstock.kafka import Cluster
from penstock.kafka.admin.consumer_groups import CommittedOffset, Groups
from penstock.kafka.read.read_records import read_topic


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Penstock:
    """Runs commands on one cluster."""

    def __init__(self, brokers: str, patch: pytest.MonkeyPatch, screen: pytest.CaptureFixture[str]) -> None:
        self._patch = patch
        self._screen = screen
        patch.setenv("PENSTOCK_BROKERS", brokers)

    def __call__(self, *arguments: str, ok: bool = True) -> Answer:
        """Checks the exit code, unless ``ok`` is False."""
        self._patch.setattr("sys.argv", ["penstock", *arguments])
        self._screen.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        shown = self._screen.readouterr()
        answer = Answer(int(str(ended.value.code)), shown.out, shown.err)
        assert answer.code == 0 or not ok, f"{arguments}: {answer}"
        return answer

    def json(self, *arguments: str, ok: bool = True) -> Any:
        return self(*arguments, "--json", ok=ok).json


def state_in_the_client(state: str) -> str:
    """The client knows only one of three names for a group that rebalances by the newer protocol."""
    return "Rebalancing" if state in ("Assigning", "Reconciling") else state


def same_lists(penstock: Penstock, tool: GroupTool, *own: str, share: bool) -> dict[str, dict[str, Any]]:
    """Checks that both list the same groups in the same states; returns what Penstock lists.

    Brokers may remove groups of earlier tests meanwhile, so only groups that did not change are compared.
    """

    def listed() -> dict[str, dict[str, Any]]:
        everything = penstock.json("groups", "ls")["groups"]
        return {each["group"]: each for each in everything if (each["type"] == "Share") is share}

    before = listed()
    names = set(tool("--list").split())
    states = {row["GROUP"]: state_in_the_client(row["STATE"]) for row in tool.rows("--list", "--state")}
    after = listed()
    steady = {name: each for name, each in before.items() if after.get(name) == each}
    assert {*own} <= steady.keys() <= names <= before.keys() | after.keys()
    differ = {name: (each, states.get(name)) for name, each in steady.items() if states.get(name) != each["state"]}
    assert not differ, f"Penstock and Kafka's tool: {differ}"
    return steady


def set_offsets(cluster: Cluster, group: str, commits: dict[TopicPartition, int | CommittedOffset]) -> None:
    wanted = {tp: each if isinstance(each, CommittedOffset) else CommittedOffset(each) for tp, each in commits.items()}
    Groups(cluster).commit(group, wanted)


def offsets_of(cluster: Cluster, group: str) -> dict[TopicPartition, int]:
    found = Groups(cluster).committed([group])[group]
    assert isinstance(found, dict)
    return {tp: commit.offset for tp, commit in found.items()}


def commit_log_partitions(brokers: str) -> dict[str, set[int]]:
    """For each group, the partitions of ``__consumer_offsets`` in which the broker has its records."""
    found: dict[str, set[int]] = {}
    for record in read_topic(brokers, COMMIT_LOG):
        # The key of each record begins with a version and the name of the group.
        _, length = struct.unpack_from(">hh", record.key or b"")
        found.setdefault((record.key or b"")[4 : 4 + length].decode(), set()).add(record.partition)
    return found


class Joining:
    """A group member that is a plain Kafka client. Poll it until it has joined."""

    def __init__(self, brokers: str, group: str, topic: str, **settings: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": brokers,
                "group.id": group,
                "client.id": "bystander",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                **settings,
            }
        )
        self._consumer.subscribe([topic])

    def poll(self) -> None:
        self._consumer.poll(0.1)

    def close(self) -> None:
        self._consumer.close()


class Joined(Joining):
    """A member that has got its partitions."""

    def __init__(self, brokers: str, group: str, topic: str, **settings: str) -> None:
        super().__init__(brokers, group, topic, **settings)
        wait_for(self._assigned, "an assignment")

    def _assigned(self) -> bool:
        self.poll()
        return bool(self._consumer.assignment())

    def commit(self, topic: str, partition: int, offset: int) -> None:
        self._consumer.commit(offsets=[KafkaTopicPartition(topic, partition, offset)], asynchronous=False)

    def metadata(self) -> bytes:
        metadata: bytes = self._consumer.consumer_group_metadata()
        return metadata


class Sharing:
    """A share group member that is a plain Kafka client and acquires no records."""

    def __init__(self, brokers: str, group: str, topic: str) -> None:
        config = {"bootstrap.servers": brokers, "group.id": group, "client.id": "bystander", "client.rack": "room-2"}
        self._consumer = ShareConsumer(config, logger=logging.getLogger("share"))
        self._consumer.subscribe([topic])

    def close(self) -> None:
        self._consumer.close()
