"""More workers than partitions: keys and unordered records of one partition run at the same time, on a real broker."""

import threading
from collections import defaultdict

import pytest
from confluent_kafka import Consumer, TopicPartition

from kafka_helpers import WAIT_SECONDS, MakeTopic, Running, catch_up, committed, lag, of_kind, produce, wait_for
from penstock import App, Record, Retry
from penstock.core.progress.offset_map import decode
from penstock.core.reports import events
from penstock.core.scheduling import hot_key_detector
from penstock.kafka import Cluster, make_producer


def produce_keys(brokers: str, topic: str, keys: list[bytes | None]) -> None:
    producer = make_producer(brokers, settings={})
    for number, key in enumerate(keys):
        producer.produce(topic, value=str(number).encode(), key=key, partition=0)
    assert producer.flush(WAIT_SECONDS) == 0


def committed_map(brokers: str, group: str, topic: str) -> tuple[int, str]:
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": group})
    (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=WAIT_SECONDS)
    consumer.close()
    return found.offset, found.metadata or ""


@pytest.mark.parametrize("order", ["key", "none"])
def test_one_partition_is_worked_on_by_many_at_once(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, order: str
) -> None:
    source, together = make_topic(), threading.Barrier(10)
    app = App(group)

    @app.consume(source, order=order, concurrency=10)  # type: ignore[arg-type]
    def handle(value: int) -> None:
        together.wait(WAIT_SECONDS)  # passes only if ten records are in progress at the same time

    produce_keys(brokers, source, [b"key-%d" % n for n in range(100)])
    catch_up(app, brokers)
    assert lag(cluster, group, source) == 0


def test_each_key_keeps_its_order_and_runs_one_at_a_time(brokers: str, group: str, make_topic: MakeTopic) -> None:
    source, seen, running = make_topic(), defaultdict(list), set()
    app = App(group)

    @app.consume(source, order="key", concurrency=16, retry=Retry(attempts=2, first="10ms"))
    def handle(value: int, record: Record) -> None:
        assert record.key not in running
        running.add(record.key)
        threading.Event().wait(0.001 * (value % 3))
        running.remove(record.key)
        if value % 10 == 0 and record.attempt == 1:
            raise OSError("the first attempt fails, and its key waits for the second")
        seen[record.key].append(value)

    produce_keys(brokers, source, [b"key-%d" % (n % 20) for n in range(600)])
    catch_up(app, brokers)
    assert {key: sorted(values) for key, values in seen.items()} == dict(seen)
    assert sorted(value for values in seen.values() for value in values) == list(range(600))


def test_a_key_in_backoff_holds_up_no_other_key(brokers: str, group: str, make_topic: MakeTopic) -> None:
    source, seen = make_topic(), []
    app = App(group)

    @app.consume(source, order="key", concurrency=4, retry=Retry(attempts=2, first="1h", limit="1h"))
    def handle(value: int, record: Record) -> None:
        if record.key == b"bad":
            raise OSError("away for an hour")
        seen.append(value)

    produce_keys(brokers, source, [b"bad" if n % 10 == 0 else b"key-%d" % n for n in range(1_000)])
    member = Running(app, brokers)
    wait_for(lambda: len(seen) == 900, "every other key")
    member.stop()
    assert len(of_kind(member.events, events.Retried)) == 1


def test_records_finished_above_a_stuck_one_are_not_repeated_after_a_restart(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, seen, release = make_topic(), [], threading.Event()
    app = App(group)

    @app.consume(source, order="none", concurrency=8, commit_every="100ms", drain_timeout="200ms")
    def handle(value: int) -> None:
        if value in (3, 500) and not release.is_set():
            release.wait()
            return
        seen.append(value)

    produce(brokers, source, range(1_000))
    member = Running(app, brokers)
    wait_for(lambda: len(seen) == 998, "all but the stuck ones")
    expected = [(4, 500), (501, 1_000)]

    def map_is_there() -> bool:
        offset, metadata = committed_map(brokers, group, source)
        return offset == 3 and bool(metadata) and decode(offset, metadata) == expected

    wait_for(map_is_there, "a commit that says what is finished")
    member.stop()
    assert committed(cluster, group, source) == {0: 3}
    release.set()
    handled = len(seen)
    catch_up(app, brokers)
    assert sorted(seen[handled:]) == [3, 500]
    assert committed_map(brokers, group, source) == (1_000, "")


def test_foreign_metadata_is_reported_and_costs_nothing_but_repeats(
    brokers: str, group: str, make_topic: MakeTopic
) -> None:
    source, seen = make_topic(), []
    produce(brokers, source, range(10))
    foreign = Consumer({"bootstrap.servers": brokers, "group.id": group})
    foreign.commit(offsets=[TopicPartition(source, 0, 4, "somebody else's notes")], asynchronous=False)
    foreign.close()
    app = App(group)

    @app.consume(source, order="none")
    def handle(value: int) -> None:
        seen.append(value)

    reported = of_kind(catch_up(app, brokers), events.Error)
    assert sorted(seen) == list(range(4, 10))
    assert [event.fatal for event in reported] == [False]
    assert "is ignored: it is not an offset map of Penstock" in reported[0].reason


def test_a_key_that_delays_the_others_is_reported(
    brokers: str, group: str, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hot_key_detector, "_CHECK_SECONDS", 0.1)
    monkeypatch.setattr(hot_key_detector, "_HOT_SECONDS", 0.5)
    source, app, told = make_topic(), App(group), threading.Event()

    @app.consume(source, order="key", concurrency=8)
    def handle(value: int) -> None:
        told.wait(0.1)

    produce_keys(brokers, source, [b"hot" if n % 2 else b"key-%d" % n for n in range(1_000)])
    member = Running(app, brokers)
    wait_for(lambda: of_kind(member.events, events.HotKey), "the event")
    told.set()
    member.stop()
    hot, *_ = of_kind(member.events, events.HotKey)
    assert (hot.topic, hot.partition, hot.key, hot.group) == (source, 0, "hot", group)
    assert hot.of / 2 < hot.waiting <= 500
    assert hot.seconds >= 0.5
