"""Logs that lack the group's next offset: retention, recreated topics, added partitions."""

import threading
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from kafka_helpers import WAIT_SECONDS, MakeTopic, catch_up, committed, of_kind, produce, running, wait_for
from penstock import App, Record
from penstock.core.reports import events
from penstock.kafka import Cluster

QUICK = {"topic.metadata.refresh.interval.ms": 500}
Seen = list[tuple[int, bytes]]


def make_app(group: str, *sources: str, **options: Any) -> tuple[App, Seen]:
    app, seen = App(group), Seen()

    @app.consume(*sources, settings=QUICK, **options)
    def handle(value: bytes, record: Record) -> None:
        seen.append((record.offset, value))

    return app, seen


def delete_records(brokers: str, topic: str, below: int) -> None:
    admin = AdminClient({"bootstrap.servers": brokers})
    for future in admin.delete_records([TopicPartition(topic, 0, below)]).values():
        future.result()


@pytest.mark.parametrize("way", ["cooperative", "eager", "consumer", "partitions"])
def test_retention_that_passed_the_committed_offset_is_reported_with_what_was_skipped(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, way: str
) -> None:
    source = make_topic()
    produce(brokers, source, range(100))
    cluster.commit(group, {(source, 0): 10})
    delete_records(brokers, source, 60)
    options: dict[str, dict[str, Any]] = {
        "cooperative": {},
        "eager": {"assignor": "range"},
        "consumer": {"protocol": "consumer"},
        "partitions": {"partitions": [(source, 0)]},
    }
    app, seen = make_app(group, *([] if way == "partitions" else [source]), **options[way])
    (found,) = of_kind(catch_up(app, brokers), events.OffsetOutOfRange)
    assert [offset for offset, _ in seen] == list(range(60, 100))
    assert (found.offset, found.low, found.high, found.moved_to, found.skipped) == (10, 60, 100, 60, 50)
    assert committed(cluster, group, source) == {0: 100}


def test_an_offset_that_is_not_in_the_log_is_replaced_by_start(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source = make_topic()
    produce(brokers, source, range(100))
    delete_records(brokers, source, 60)
    expected = {"latest": (100, 90), "map": (80, 70), "too early": (60, 50)}
    starts = {"latest": "latest", "map": {(source, 0): 80}, "too early": {(source, 0): 30}}
    for name, start in starts.items():
        cluster.commit(f"{group}-{name[:3]}", {(source, 0): 10})
        app, seen = make_app(f"{group}-{name[:3]}", source, start=start)
        (found,) = of_kind(catch_up(app, brokers), events.OffsetOutOfRange)
        assert (found.moved_to, found.skipped) == expected[name]
        assert len(seen) == 100 - found.moved_to


def test_retention_in_the_middle_is_survived_and_reported(brokers: str, group: str, make_topic: MakeTopic) -> None:
    source, gate, seen = make_topic(), threading.Event(), []
    app = App(group)

    # Few records are in flight and buffered, so most of the log has not been fetched yet.
    @app.consume(
        source,
        max_in_flight=10,
        settings={
            "fetch.max.bytes": 2_000,
            "max.partition.fetch.bytes": 1_000,
            **QUICK,
            "queued.min.messages": 1,
            "message.max.bytes": 1_500,
        },
    )
    def handle(value: bytes, record: Record) -> None:
        seen.append(record.offset)
        assert gate.wait(WAIT_SECONDS)

    producer = Producer({"bootstrap.servers": brokers, "batch.num.messages": 1})
    for _ in range(200):
        producer.produce(source, b"x" * 500)
    assert producer.flush(WAIT_SECONDS) == 0
    with running(app, brokers) as member:
        wait_for(lambda: seen, "the first record")
        delete_records(brokers, source, 150)
        gate.set()
        wait_for(lambda: seen[-1:] == [199], "the last record")
    (found,) = of_kind(member.events, events.OffsetOutOfRange)
    assert found.moved_to == 150
    assert 0 < found.skipped < 150
    assert seen == [*range(150 - found.skipped), *range(150, 200)], "all records that were not deleted, in order"
    assert not of_kind(member.events, events.Revoked)[1:]


def test_a_recreated_topic_is_consumed_from_its_new_start(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source = make_topic()
    produce(brokers, source, [f"old-{n}" for n in range(50)])
    app, seen = make_app(group, source)
    with running(app, brokers) as member:
        wait_for(lambda: len(seen) == 50, "the old records")
        cluster.delete_topics([source])
        wait_for(lambda: source not in cluster.topics(), "the topic to be gone")
        cluster.create_topics([source], partitions=1)
        produce(brokers, source, [f"new-{n}" for n in range(5)])
        wait_for(lambda: len(seen) >= 55, "the new records")
        produce(brokers, source, [b"last"])
        wait_for(lambda: seen[-1][1] == b"last", "what came after them")
        wait_for(lambda: committed(cluster, group, source) == {0: 6}, "the commit")
        assert member.is_alive
    assert [value for _, value in seen[50:]] == [*(b"new-%d" % n for n in range(5)), b"last"]
    assert not [event for event in of_kind(member.events, events.Error) if event.fatal]


@pytest.mark.parametrize("way", ["subscribed", "partitions"])
def test_a_recreated_topic_that_outgrows_the_old_one_at_once_is_not_mistaken_for_it(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, way: str
) -> None:
    source = make_topic()
    produce(brokers, source, [f"old-{n}" for n in range(20)])
    named: dict[str, Any] = {"partitions": [(source, 0)]} if way == "partitions" else {}
    app, seen = make_app(group, *([] if named else [source]), **named)
    with running(app, brokers):
        wait_for(lambda: len(seen) == 20, "the old records")
        # The engine must have checked the topic id once, which it does each second, and the records must be committed.
        wait_for(lambda: committed(cluster, group, source) == {0: 20}, "the commit")
        threading.Event().wait(1.2)
        cluster.delete_topics([source])
        wait_for(lambda: source not in cluster.topics(), "the topic to be gone")
        cluster.create_topics([source], partitions=1)
        produce(brokers, source, [f"new-{n}" for n in range(500)])
        wait_for(lambda: {b"new-%d" % n for n in range(500)} <= {value for _, value in seen}, "all of the new log")
        wait_for(lambda: committed(cluster, group, source) == {0: 500}, "the commit of the new log")


def test_a_group_that_stands_behind_the_end_of_a_new_log_starts_it_over(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source = make_topic()
    produce(brokers, source, range(5))
    # As after a restore of the topic from a backup, or of the offsets from another cluster.
    cluster.commit(group, {(source, 0): 1_000})
    app, seen = make_app(group, source)
    (found,) = of_kind(catch_up(app, brokers), events.OffsetOutOfRange)
    assert (found.offset, found.moved_to, found.skipped) == (1_000, 0, 0)
    assert [offset for offset, _ in seen] == [*range(5)]
    assert committed(cluster, group, source) == {0: 5}


def test_partitions_that_are_added_are_consumed_from_their_start(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source = make_topic()
    produce(brokers, source, range(5))
    app, seen = make_app(group, source, start="latest")
    with running(app, brokers) as member:
        wait_for(lambda: committed(cluster, group, source) == {0: 5}, "the first partition")
        admin = AdminClient({"bootstrap.servers": brokers})
        for future in admin.create_partitions([NewPartitions(source, 3)]).values():
            future.result()
        wait_for(lambda: cluster.topics()[source] == 3, "the new partitions")
        produce(brokers, source, range(5), partition=2)
        wait_for(lambda: len(seen) == 5, "the records of a new partition")
        wait_for(lambda: committed(cluster, group, source) == {0: 5, 1: 0, 2: 5}, "the commits, also of the empty one")
        assert not of_kind(member.events, events.Error)
