"""A group member stops, rebalances and waits."""

import threading
from collections import Counter

import pytest

from kafka_helpers import (
    QUICK,
    WAIT_SECONDS,
    MakeTopic,
    Running,
    catch_up,
    committed,
    lag,
    of_kind,
    produce,
    running,
    wait_for,
)
from penstock import App, Record, Retry
from penstock.core.reports import events
from penstock.errors import ServerError
from penstock.kafka import Cluster


def test_a_clean_stop_in_the_middle_repeats_nothing(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, seen, first_half = make_topic(2), [], threading.Event()
    app = App(group)

    @app.consume(source)
    def handle(value: int) -> None:
        seen.append(value)
        if len(seen) > 300:
            first_half.set()
        threading.Event().wait(0.001)

    for partition in range(2):
        produce(brokers, source, range(partition * 1_000, partition * 1_000 + 1_000), partition=partition)
    member = Running(app, brokers)
    assert first_half.wait(WAIT_SECONDS)
    member.stop()
    handled = len(seen)
    assert 300 < handled < 2_000
    assert sum(committed(cluster, group, source).values()) == handled
    catch_up(app, brokers)
    assert sorted(seen) == list(range(2_000))


def test_a_record_in_progress_is_awaited_at_a_stop(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, entered, release = make_topic(), threading.Event(), threading.Event()
    app = App(group)

    @app.consume(source)
    def handle(value: int) -> None:
        entered.set()
        assert release.wait(WAIT_SECONDS)

    produce(brokers, source, range(3))
    member = Running(app, brokers)
    assert entered.wait(WAIT_SECONDS)
    stopper = threading.Thread(target=member.stop)
    stopper.start()
    wait_for(lambda: of_kind(member.events, events.Stopping), "the stop to begin")
    assert member.is_alive
    release.set()
    stopper.join(WAIT_SECONDS)
    assert committed(cluster, group, source) == {0: 1}


def test_a_handler_that_never_ends_is_left_behind_after_the_drain_timeout(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, entered, never = make_topic(), threading.Event(), threading.Event()
    app = App(group)

    @app.consume(source, drain_timeout="500ms")
    def handle(value: int) -> None:
        if value == 1:
            entered.set()
            never.wait()

    produce(brokers, source, range(3))
    member = Running(app, brokers)
    assert entered.wait(WAIT_SECONDS)
    # Records before the stuck one are committed.
    wait_for(lambda: committed(cluster, group, source) == {0: 1}, "a commit up to the stuck record")
    member.stop()
    never.set()
    assert committed(cluster, group, source) == {0: 1}
    (revoked,) = of_kind(member.events, events.Revoked)
    assert revoked.unfinished == 2


def test_members_share_the_partitions_and_give_them_back_without_loss_or_repeats(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, helped = make_topic(4), threading.Event()
    seen: Counter[tuple[int, int]] = Counter()

    def app() -> App:
        made = App(group)

        @made.consume(source, settings=QUICK)
        def handle(value: bytes, record: Record) -> None:
            seen[record.partition, record.offset] += 1
            # Slow until the second member has worked, so that there are records left for it.
            helped.wait(0.2)

        return made

    for partition in range(4):
        produce(brokers, source, range(600), partition=partition)
    with running(app(), brokers) as first:
        wait_for(lambda: len(seen) > 10, "the first member to work")
        second = Running(app(), brokers)
        wait_for(lambda: of_kind(second.events, events.Assigned), "the second member to get partitions")
        wait_for(lambda: of_kind(second.events, events.Finished), "the second member to work")
        helped.set()
        second.stop()
        wait_for(lambda: len(seen) == 2_400, "everything to be handled")
        moved = {event.partition for event in of_kind(first.events, events.Revoked)}
        assert moved == {event.partition for event in of_kind(second.events, events.Assigned)}
        assert 0 < len(moved) < 4, "cooperative: only partitions that move are revoked"
    assert set(seen.values()) == {1}
    assert lag(cluster, group, source) == 0


def test_a_partition_in_backoff_does_not_starve_the_others(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, seen = make_topic(2), []
    app = App(group)

    @app.consume(source, max_in_flight=100, retry=Retry(attempts=2, first="1h", limit="1h"))
    def handle(value: int, record: Record) -> None:
        if record.partition == 0:
            raise OSError("away for an hour")
        seen.append(value)

    # More records than max_in_flight, so the stuck partition alone could use all of it.
    for partition in range(2):
        produce(brokers, source, range(1_000), partition=partition)
    with running(app, brokers) as member:
        wait_for(lambda: len(seen) == 1_000, "the healthy partition to finish")
        wait_for(lambda: committed(cluster, group, source).get(1) == 1_000, "its commit")
        assert not of_kind(member.events, events.Error)
    assert seen == list(range(1_000))
    assert committed(cluster, group, source).get(0, 0) == 0


def test_a_record_is_handled_as_soon_as_it_is_written(brokers: str, group: str, make_topic: MakeTopic) -> None:
    source, seen = make_topic(), []
    app = App(group)

    @app.consume(source, start="latest")
    def handle(value: bytes) -> None:
        seen.append(value)

    produce(brokers, source, ["before"])
    with running(app, brokers) as member:
        wait_for(lambda: of_kind(member.events, events.Assigned), "an assignment")

        # The first fetch after the assignment resolves "latest", so write until one record arrives.
        def one_arrives() -> bool:
            produce(brokers, source, ["after"])
            return bool(seen)

        wait_for(one_arrives, "the record")
    assert set(seen) == {b"after"}


def test_a_broker_that_does_not_answer_is_one_clear_error(group: str) -> None:
    app = App(group)
    app.consume("orders")(lambda _: None)
    with pytest.raises(ServerError, match=r"No Kafka broker answers at 127\.0\.0\.1:1\.") as caught:
        catch_up(app, "127.0.0.1:1")
    assert "penstock up" in caught.value.hint
