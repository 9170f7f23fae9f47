"""Handlers that run long: the size of slices, topics that change, others in the group."""

import threading
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from kafka_helpers import WAIT_SECONDS, CatchUp, MakeTopic, committed, of_kind, produce, read_values, running, wait_for
from penstock import App, Record, Retry
from penstock.core.reports import events
from penstock.kafka import Cluster
from thread_jobs import OnThreads, Start


def echo(group: str, *sources: str, **options: Any) -> App:
    app = App(group)

    @app.consume(*sources, to=f"{group}.out", **options)
    def handle(value: bytes) -> bytes:
        return value

    return app


def outputs(brokers: str, group: str) -> list[int]:
    return sorted(int(value or b"") for value in read_values(brokers, f"{group}.out"))


def delete_records(brokers: str, topic: str, below: int) -> None:
    admin = AdminClient({"bootstrap.servers": brokers})
    for future in admin.delete_records([TopicPartition(topic, 0, below)]).values():
        future.result()


def sizes(seen: list[events.Event]) -> list[int]:
    return [batch.read for batch in of_kind(seen, events.BatchFinished)]


def test_no_slice_has_more_records_than_max_micro_batch(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic(2)
    for partition in range(2):
        produce(brokers, source, range(1_000), partition=partition)
    seen = catch_up(echo(group, source, max_micro_batch=300))
    offsets = [(event.partition, event.offset) for event in of_kind(seen, events.Committed)]
    assert [offset for partition, offset in offsets if partition == 0] == [300, 600, 900, 1_000]
    assert [offset for partition, offset in offsets if partition == 1] == [300, 600, 900, 1_000]
    assert sum(sizes(seen)) == 2_000
    assert of_kind(seen, events.BatchFinished)[-1].lag == 0
    assert of_kind(seen, events.Progressed)[-1].read == 2_000


def test_a_slow_handler_is_committed_every_micro_batch(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic()
    app = App(group)

    @app.consume(source, micro_batch="200ms")
    def handle(_value: bytes) -> None:
        time.sleep(0.01)

    produce(brokers, source, range(100))
    seen = catch_up(app)
    commits = [event.offset for event in of_kind(seen, events.Committed)]
    assert len(commits) > 2
    assert commits == sorted(commits)
    assert (sum(sizes(seen)), commits[-1]) == (100, 100)


def test_a_stuck_partition_delays_no_other(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, start: Start
) -> None:
    source, gate = make_topic(2), threading.Event()
    Gates.gate = gate
    produce(brokers, source, ["stuck"], partition=0)
    with start(stuck_app(group, source)) as running_app:
        for number in range(1, 4):
            produce(brokers, source, [number], partition=1)
            wait_for(lambda: committed(cluster, group, source).get(1) == number, "the other partition")  # noqa: B023
        assert committed(cluster, group, source).get(0, 0) == 0
        gate.set()
        wait_for(lambda: committed(cluster, group, source) == {0: 1, 1: 3}, "the stuck one")
        assert running_app.read() == 4


class Gates:
    """The event for which a handler waits. Handlers are pickled; modules that they import are not."""

    gate = threading.Event()


def stuck_app(group: str, source: str) -> App:
    app = App(group)
    app.consume(source)(wait_if_stuck)
    return app


def wait_if_stuck(value: bytes) -> None:
    if value == b"stuck":
        Gates.gate.wait(WAIT_SECONDS)


def test_partitions_that_are_added_while_it_runs_are_read_from_their_start(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, start: Start
) -> None:
    source = make_topic()
    produce(brokers, source, range(5))
    with start(echo(group, source, start="latest")) as app:
        wait_for(lambda: committed(cluster, group, source) == {0: 5}, "the first partition")
        admin = AdminClient({"bootstrap.servers": brokers})
        for future in admin.create_partitions([NewPartitions(source, 3)]).values():
            future.result()
        wait_for(lambda: cluster.topics()[source] == 3, "the new partitions")
        produce(brokers, source, range(5, 9), partition=2)
        wait_for(lambda: app.read() == 4, "the records of a new partition")
        assert not of_kind(app.events, events.Error)
        assert not of_kind(app.events, events.Restarting)
    assert committed(cluster, group, source) == {0: 5, 1: 0, 2: 4}
    assert outputs(brokers, group) == list(range(5, 9))


def test_retention_that_overtakes_a_running_handler_is_reported_with_what_was_skipped(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, start: Start, tmp_path: Path
) -> None:
    source, entered, gate = make_topic(), str(tmp_path / "entered"), str(tmp_path / "gate")
    app = App(group)

    # Fetches are small, so most of the log has not been fetched yet.
    small = {"max.partition.fetch.bytes": 1_000}

    @app.consume(source, to=f"{group}.out", max_micro_batch=10, restart=Retry(attempts=5, first="10ms"), settings=small)
    def handle(value: bytes) -> bytes:
        import time  # noqa: PLC0415 - in the worker
        from pathlib import Path  # noqa: PLC0415

        Path(entered).touch()
        while not Path(gate).exists():
            time.sleep(0.01)
        return value

    producer = Producer({"bootstrap.servers": brokers, "batch.num.messages": 1})
    for number in range(100):
        producer.produce(source, f"{number:0500}")
    assert producer.flush(WAIT_SECONDS) == 0
    with start(app) as running_app:
        wait_for(Path(entered).exists, "the first record")
        delete_records(brokers, source, 80)
        Path(gate).touch()
        wait_for(lambda: committed(cluster, group, source) == {0: 100}, "what is left")
    (found,) = of_kind(running_app.events, events.OffsetOutOfRange)
    assert (found.member, found.low, found.high, found.moved_to) == ("spark", 80, 100, 80)
    assert found.skipped == 80 - found.offset
    assert not of_kind(running_app.events, events.Restarting)
    assert set(range(found.offset)) <= set(outputs(brokers, group))
    assert [number for number in outputs(brokers, group) if number >= 80] == list(range(80, 100))


def test_a_topic_that_is_recreated_while_it_runs_is_read_from_its_new_start(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, start: Start
) -> None:
    source = make_topic()
    produce(brokers, source, range(20))
    with start(echo(group, source, restart=Retry(attempts=20, first="100ms", factor=1))) as app:
        wait_for(lambda: app.read() == 20, "the old records")
        cluster.delete_topics([source])
        wait_for(lambda: source not in cluster.topics(), "the topic to be gone")
        cluster.create_topics([source], partitions=1)
        # More records than before, so the old offset exists in the new log too.
        produce(brokers, source, range(1_000, 1_050))
        wait_for(lambda: {*range(1_000, 1_050)} <= {*outputs(brokers, group)}, "all of the new log")
        wait_for(lambda: committed(cluster, group, source) == {0: 50}, "the commit of the new log")
    (found,) = of_kind(app.events, events.OffsetOutOfRange)
    assert (found.offset, found.moved_to) == (20, 0)


def test_a_member_that_joins_later_shares_the_partitions_and_nothing_is_handled_twice(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, start: Start
) -> None:
    source = make_topic(2)
    produce(brokers, source, range(4), partition=0)
    produce(brokers, source, range(4, 8), partition=1)
    with start(echo(group, source)) as app:
        wait_for(lambda: committed(cluster, group, source) == {0: 4, 1: 4}, "the first commits")
        with running(echo(group, source), brokers) as member:
            wait_for(lambda: of_kind(member.events, events.Assigned), "the member to get a partition")
            produce(brokers, source, range(8, 12), partition=0)
            produce(brokers, source, range(12, 16), partition=1)
            wait_for(lambda: committed(cluster, group, source) == {0: 8, 1: 8}, "the work of both")
            assert len(of_kind(app.events, events.Revoked)) == 1
        produce(brokers, source, range(16, 20), partition=0)
        produce(brokers, source, range(20, 24), partition=1)
        wait_for(lambda: committed(cluster, group, source) == {0: 12, 1: 12}, "Spark to take over again")
    assert outputs(brokers, group) == list(range(24))


def test_two_drivers_share_the_partitions(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, start: Start
) -> None:
    source = make_topic(2)
    with start(echo(group, source)) as first:
        wait_for(lambda: len(of_kind(first.events, events.Assigned)) == 2, "the first driver")
        second = OnThreads(echo(group, source), brokers)
        wait_for(lambda: of_kind(second.events, events.Assigned), "the second driver")
        for partition in range(2):
            produce(brokers, source, range(partition * 50, partition * 50 + 50), partition=partition)
        wait_for(lambda: committed(cluster, group, source) == {0: 50, 1: 50}, "the work of both")
        second.stop()
    assert outputs(brokers, group) == list(range(100))


def test_callbacks_get_the_partitions_that_come_and_go(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source, seen = make_topic(2), list[tuple[str, list[tuple[str, int]]]]()
    app = App(group)
    app.consume(
        source,
        on_assigned=lambda tps: seen.append(("assigned", sorted(tps))),
        on_revoked=lambda tps: seen.append(("revoked", sorted(tps))),
    )(wait_if_stuck)
    produce(brokers, source, range(3))
    catch_up(app)
    both = [(source, 0), (source, 1)]
    assert seen == [("assigned", both), ("revoked", both)]


def test_a_record_of_a_retry_topic_is_handled_when_it_is_due(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, start: Start
) -> None:
    source = make_topic()
    app = App(group)

    @app.consume(
        source, to=f"{group}.out", retry_topics=["1s"], retry=Retry(attempts=2, first="1s", factor=1, jitter=0)
    )
    def handle(value: int, record: Record) -> int:
        if value == 2 and record.attempt == 1:
            raise OSError("away")
        return value * 10 + record.attempt

    produce(brokers, source, range(4))
    with start(app) as running_app:
        wait_for(lambda: committed(cluster, group, source) == {0: 4}, "the source")
        wait_for(lambda: len(outputs(brokers, group)) == 4, "the retried record")
    assert outputs(brokers, group) == [1, 11, 22, 31]
    (postponed,) = of_kind(running_app.events, events.Postponed)
    assert (postponed.offset, postponed.attempt) == (2, 1)


def test_small_slices_of_many_partitions_share_tasks(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic(12)
    for partition in range(12):
        produce(brokers, source, range(partition * 10, partition * 10 + 10), partition=partition)
    seen = catch_up(echo(group, source, order="key"))
    assert outputs(brokers, group) == list(range(120))
    assert len(of_kind(seen, events.BatchFinished)) < 12
    assert committed(cluster, group, source) == dict.fromkeys(range(12), 10)
