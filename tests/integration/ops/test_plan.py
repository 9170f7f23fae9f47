"""`penstock plan` on live groups of both protocols, with members of librdkafka and of Java's client."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from confluent_kafka import Consumer, TopicPartition

from cli_helpers import Joined, Penstock, set_offsets
from kafka_helpers import WAIT_SECONDS, MakeTopic, produce, wait_for
from penstock.jvm.coordinates import kafka_tools
from penstock.jvm.jars import resolve
from penstock.jvm.java_runtime import find_java
from penstock.kafka import Cluster, make_consumer, make_producer
from penstock.kafka.admin.consumer_groups import GroupDescription, Groups

PARTITIONS = 4


@contextmanager
def joined(
    brokers: str, group: str, members: dict[str, list[str]], *, partitions: int, **settings: Any
) -> Iterator[list[Consumer]]:
    """Members with these client ids and topics, the first in the broker's rack and the others elsewhere."""
    consumers = []
    for at, (client, topics) in enumerate(members.items()):
        own = {"client.id": client, "client.rack": f"rack-{at + 1}", "bootstrap.servers": brokers, "group.id": group}
        consumers.append(Consumer({"enable.auto.commit": False, **own, **settings}))
        consumers[-1].subscribe(topics)

    def settled() -> bool:
        for consumer in consumers:
            consumer.poll(0.05)
        held = [tp for consumer in consumers for tp in consumer.assignment()]
        return all(consumer.assignment() for consumer in consumers) and len(held) == partitions

    try:
        wait_for(settled, "an assignment")
        yield consumers
    finally:
        for consumer in consumers:
            consumer.close()


def test_a_group_of_the_classic_protocol_is_planned_for_as_it_is(
    penstock: Penstock, brokers: str, make_topic: MakeTopic, group: str, tmp_path: Path
) -> None:
    orders, returns, extra = make_topic(PARTITIONS), make_topic(PARTITIONS), make_topic(2)
    produce(brokers, orders, range(30), partition=1)
    members = {"worker-1": [orders, returns], "worker-2": [orders]}
    classic = {"partition.assignment.strategy": "range", "heartbeat.interval.ms": 300}
    with joined(brokers, group, members, partitions=2 * PARTITIONS, **classic) as consumers:
        consumers[0].commit(offsets=[TopicPartition(orders, 1, 10)], asynchronous=False)
        kept, drawn = tmp_path / "kept.json", tmp_path / "plan.svg"
        words = ["--save", str(kept), "--svg", str(drawn)]
        found = penstock.json("plan", group, *words)
        (made,) = found["plans"]
        first, second = (consumer.memberid() for consumer in consumers)

        assert found["notes"] == []
        assert made["assignor"] == "range"
        assert "librdkafka" in made["estimate"]
        assert made["moves"] == []
        assert made["before"] == made["after"]
        assert made["before"]["partitions"] == {
            first: {orders: [0, 1], returns: [0, 1, 2, 3]},
            second: {orders: [2, 3]},
        }
        assert made["before"]["lags"] == {first: 20, second: 0}
        assert made["before"]["rates"][first] == pytest.approx(0.5)
        assert made["before"]["far"] == 2

        known = json.loads(kept.read_text())
        assert {each["client"]: (set(each["topics"]), each["rack"]) for each in known["members"]} == {
            "worker-1": ({orders, returns}, "rack-1"),
            "worker-2": ({orders}, "rack-2"),
        }
        assert known["topics"][orders]["racks"] == [["rack-1"]] * PARTITIONS
        assert ET.fromstring(drawn.read_text()).tag.endswith("svg")
        assert penstock.json("plan", str(kept), "--assignor", "range")["plans"] == [made]

        (gone,) = penstock.json("plan", group, "--members", "-worker-2", "--heartbeat", "300ms")["plans"]
        assert [(each["partition"], each["to"], each["why"]) for each in gone["moves"]] == [
            (2, first, "owner left"),
            (3, first, "owner left"),
        ]
        assert gone["cooperative"] == {"partitions": 2, "rebalances": 1, "seconds": 0.3, "records": 0}

        changes = ["--members", "+2", "--topics", f"+{extra}", "--partitions", f"{orders}=8"]
        several = penstock.json("plan", group, *changes, "--compare", "range,sticky,lag-balanced")["plans"]
        assert [(each["assignor"], bool(each["estimate"])) for each in several] == [
            ("range", True),
            ("sticky", False),
            ("lag-balanced", False),
        ]
        for each in several:
            held = [(topic, at) for had in each["after"]["partitions"].values() for topic in had for at in had[topic]]
            assert len(held) == len(set(held)) == 8 + PARTITIONS + 2
        answer = penstock("plan", group, *changes)
        assert "worker-1" in answer.out
        assert "new-2" in answer.out
        assert "This is an estimate" in answer.err


def test_a_group_of_the_new_protocol_is_planned_for_with_what_the_broker_wrote_down(
    penstock: Penstock, brokers: str, make_topic: MakeTopic, group: str
) -> None:
    orders, returns, audit = make_topic(PARTITIONS), make_topic(PARTITIONS), make_topic(PARTITIONS)
    # No partition has to move: with this protocol, members notice a change only every five seconds.
    members = {"worker-1": [orders, f"^{returns[:-1]}.$"], "worker-2": [audit]}
    new = {"group.protocol": "consumer"}
    with joined(brokers, group, members, partitions=3 * PARTITIONS, **new) as consumers:
        first, second = (consumer.memberid() for consumer in consumers)
        found = wait_for(lambda: _stable(penstock.json("plan", group, "--members", "+1")), "a stable group")
        (made,) = found["plans"]
        assert made["assignor"] == "cooperative-sticky"
        assert "the broker divides" in made["estimate"]
        assert made["cooperative"]["seconds"] == 5.0
        everything = list(range(PARTITIONS))
        assert made["before"]["partitions"] == {
            first: {orders: everything, returns: everything},
            second: {audit: everything},
        }
        assert made["before"]["far"] == PARTITIONS
        # The subscription of the remaining member is known, by name and by pattern.
        (left,) = penstock.json("plan", group, "--members", "-worker-2", "--topics", f"+{audit}")["plans"]
        assert left["after"]["partitions"] == {first: {orders: everything, returns: everything, audit: everything}}


def _stable(found: dict[str, Any]) -> dict[str, Any] | None:
    """The plans, once their only note is that another assignor stands in for the broker."""
    return found if len(found["notes"]) == 1 and "uniform" in found["notes"][0] else None


@contextmanager
def verifiable_consumer(brokers: str, group: str, topic: str, *options: str) -> Iterator[None]:
    """Kafka's own consumer for system tests."""
    jars = ":".join(map(str, resolve(kafka_tools())))
    words = ["--bootstrap-server", brokers, "--topic", topic, "--group-id", group, *options]
    command = [str(find_java()), "-Xmx128m", "-cp", jars, "org.apache.kafka.tools.VerifiableConsumer", *words]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(WAIT_SECONDS)


def test_groups_of_javas_clients_are_planned_for(
    penstock: Penstock, brokers: str, cluster: Cluster, make_topic: MakeTopic, group: str
) -> None:
    topic, groups = make_topic(PARTITIONS), Groups(cluster)
    kinds = {
        f"{group}-classic": ["--assignment-strategy", "org.apache.kafka.clients.consumer.StickyAssignor"],
        f"{group}-consumer": ["--group-protocol", "consumer"],
    }

    def have_all(name: str) -> bool:
        found = groups.describe([name])[name]
        return isinstance(found, GroupDescription) and sum(len(each.partitions) for each in found.members) == PARTITIONS

    with ExitStack() as stack:
        for name, options in kinds.items():
            stack.enter_context(verifiable_consumer(brokers, name, topic, *options))
        for name in kinds:
            wait_for(partial(have_all, name), "Java's consumer")
            found = penstock.json("plan", name, "--members", "=2")
            (made,) = found["plans"]
            assert made["assignor"] == ("sticky" if name.endswith("classic") else "cooperative-sticky")
            assert not any("cannot be read" in note for note in found["notes"])
            ((member, had),) = made["before"]["partitions"].items()
            assert had == {topic: [0, 1, 2, 3]}
            assert {name: len(has[topic]) for name, has in made["after"]["partitions"].items()} == {
                member: 2,
                "new-1": 2,
            }


def test_a_group_without_members_is_planned_for_by_what_it_committed(
    penstock: Penstock, brokers: str, cluster: Cluster, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(PARTITIONS)
    produce(brokers, topic, range(7), partition=2)
    set_offsets(cluster, group, {(topic, 2): 3})
    found = penstock.json("plan", group, "--members", "=2", "--assignor", "lag-balanced", "--measure", "100ms")
    assert "no members" in found["notes"][0]
    (made,) = found["plans"]
    assert made["after"]["lag"]["most"] == 4
    assert made["after"]["rate"]["most"] == 0
    refused = penstock("plan", group, ok=False)
    assert refused.code == 2
    assert "--members =3" in refused.err
    missing = penstock("plan", f"{group}-missing", ok=False)
    assert missing.code == 1
    assert "There is no group" in missing.err


def test_a_plan_says_which_facts_of_a_group_cannot_be_read(
    penstock: Penstock, brokers: str, make_topic: MakeTopic, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = make_topic(PARTITIONS)
    member = Joined(brokers, group, topic, **{"group.protocol": "consumer"})
    try:
        # As if the app may not read ``__consumer_offsets``, or the log is too long for the time limit.
        monkeypatch.setattr("penstock.ops.member_subscriptions._LOG_SECONDS", 0.0)
        found = penstock.json("plan", group)
        assert any("The subscription and the rack of" in note and topic in note for note in found["notes"])
        ((had,),) = (made["before"]["partitions"].values() for made in found["plans"])
        assert had == {topic: [0, 1, 2, 3]}
    finally:
        member.close()


def test_an_open_transaction_hides_no_members_that_joined_after_it_began(
    penstock: Penstock, brokers: str, make_topic: MakeTopic, group: str
) -> None:
    """A reader with read_committed sees nothing of ``__consumer_offsets`` after the offsets of the transaction."""
    topic = make_topic(PARTITIONS)
    producer = make_producer(brokers, settings={}, transactional_id=f"{group}-open")
    producer.init_transactions()
    outsider = make_consumer(brokers, group, settings={})
    producer.begin_transaction()
    producer.send_offsets_to_transaction([TopicPartition(topic, 0, 0)], outsider.consumer_group_metadata())
    outsider.close()
    member = Joined(brokers, group, topic, **{"group.protocol": "consumer"})
    try:
        found = penstock.json("plan", group)
        assert not [note for note in found["notes"] if "cannot be read" in note]
    finally:
        producer.abort_transaction()
        member.close()
