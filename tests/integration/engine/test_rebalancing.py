"""Members come and go under every assignor and protocol, while records flow."""

import threading
from collections import Counter
from typing import Any

import pytest

from bed import MakeTopic, Running, catch_up, committed, lag, of_kind, produce, running, wait_for
from penstock import App, Record
from penstock.core import events
from penstock.kafka import Cluster

PARTITIONS = 4
QUICK = {"heartbeat.interval.ms": 300, "session.timeout.ms": 6_000}

Seen = Counter[tuple[int, int]]


def make_app(group: str, source: str, seen: Seen, *, seconds: float = 0.005, **options: Any) -> App:
    app = App(group)

    @app.consume(source, **options)
    def handle(value: bytes, record: Record) -> None:
        threading.Event().wait(seconds)
        seen[record.partition, record.offset] += 1

    return app


def fill(brokers: str, source: str, records: int) -> None:
    for partition in range(PARTITIONS):
        produce(brokers, source, range(records), partition=partition)


@pytest.mark.parametrize(
    "options",
    [
        {"assignor": "range", "settings": QUICK},
        {"assignor": "roundrobin", "settings": QUICK},
        {"assignor": "cooperative-sticky", "settings": QUICK},
        {"protocol": "consumer"},
    ],
    ids=["range", "roundrobin", "cooperative-sticky", "consumer"],
)
def test_a_member_joins_and_leaves_and_each_record_is_handled_once(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, options: dict[str, Any]
) -> None:
    source, seen = make_topic(PARTITIONS), Seen()
    # With the new protocol the broker sets the pace: a heartbeat each five seconds.
    records = 2_500 if "protocol" in options else 700
    fill(brokers, source, records)
    with running(make_app(group, source, seen, **options), brokers) as first:
        wait_for(lambda: len(seen) > 100, "the first member to work")
        second = Running(make_app(group, source, seen, **options), brokers)
        wait_for(lambda: of_kind(second.events, events.Finished), "the second member to work")
        second.stop()
        wait_for(lambda: len(seen) == PARTITIONS * records, "everything to be handled")
        moved = {event.partition for event in of_kind(first.events, events.Revoked)}
        eager = options.get("assignor") in {"range", "roundrobin"}
        assert len(moved) == (PARTITIONS if eager else 2), "eager gives all back, cooperative only what moves"
    assert set(seen.values()) == {1}
    assert committed(cluster, group, source) == dict.fromkeys(range(PARTITIONS), records)
    assert not of_kind([*first.events, *second.events], events.Error)


def test_what_stays_goes_on_while_a_slow_record_of_what_moves_is_awaited(
    brokers: str, group: str, make_topic: MakeTopic
) -> None:
    source, gate, slow_one = make_topic(2), threading.Event(), threading.Event()
    moving: set[int] = set()

    def app(*, stuck: bool) -> App:
        made = App(group)

        @made.consume(source, settings=QUICK, on_revoked=lambda places: moving.update(p for _, p in places))
        def handle(value: int, record: Record) -> None:
            threading.Event().wait(0.005)
            if stuck and value == 200 and record.partition == 0:
                slow_one.set()
                assert gate.wait(60)

        return made

    for partition in range(2):
        produce(brokers, source, range(4_000), partition=partition)
    with running(app(stuck=True), brokers) as first:
        assert slow_one.wait(60)
        with running(app(stuck=False), brokers) as second:
            # The first member gives back partition 0 of the two, whose record 200 it must wait for.
            wait_for(lambda: of_kind(second.events, events.Started), "the second member to start")

            def finished_of_1() -> int:
                return sum(event.partition == 1 for event in of_kind(first.events, events.Finished))

            before = finished_of_1()
            wait_for(lambda: finished_of_1() > before + 400, "the partition that stays to go on")
            assert not of_kind(first.events, events.Revoked)
            gate.set()
            wait_for(lambda: of_kind(second.events, events.Finished), "the second member to work")
        assert moving == {0}
        assert len(of_kind(first.events, events.Revoked)) == 1
        numbers = {event.epoch for event in of_kind(first.events, events.Finished) if event.partition == 1}
        assert len(numbers) == 1, "the partition that stays is in the same epoch all along"


def test_a_static_member_that_is_back_in_time_is_not_noticed_by_the_other(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, seen = make_topic(PARTITIONS), Seen()
    settings = {**QUICK, "session.timeout.ms": 20_000}
    with running(make_app(group, source, seen, static_id="one", settings=settings), brokers) as first:
        wait_for(lambda: len(of_kind(first.events, events.Assigned)) == PARTITIONS, "the first assignment")
        other = make_app(group, source, seen, static_id="two", settings=settings)
        with running(other, brokers) as second:
            wait_for(lambda: len(of_kind(second.events, events.Assigned)) == 2, "its share")
            fill(brokers, source, 50)
            wait_for(lambda: len(seen) == 50 * PARTITIONS, "the records")
        had = {event.partition for event in of_kind(second.events, events.Assigned)}
        assert cluster.members(group) == 2, "a static member that stops does not leave"
        before = [*of_kind(first.events, events.Revoked), *of_kind(first.events, events.Assigned)]
        with running(other, brokers) as third:
            wait_for(lambda: len(of_kind(third.events, events.Assigned)) == 2, "its share again")
            fill(brokers, source, 50)
            wait_for(lambda: len(seen) == 100 * PARTITIONS, "the new records")
            assert {event.partition for event in of_kind(third.events, events.Assigned)} == had
        assert [*of_kind(first.events, events.Revoked), *of_kind(first.events, events.Assigned)] == before
    assert set(seen.values()) == {1}
    assert lag(cluster, group, source) == 0


def test_a_static_id_that_is_taken_over_stops_the_app_with_a_reason(
    brokers: str, group: str, make_topic: MakeTopic
) -> None:
    source = make_topic()
    old = Running(make_app(group, source, Seen(), static_id="same", settings=QUICK), brokers)
    wait_for(lambda: of_kind(old.events, events.Assigned), "the first to be a member")
    with running(make_app(group, source, Seen(), static_id="same", settings=QUICK), brokers) as new:
        wait_for(lambda: of_kind(new.events, events.Assigned), "the second to take its place")
        old.join()
    assert "has the static_id 'same'" in str(old.error)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_more_members_than_partitions_in_one_process_catch_up_together(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, protocol: str
) -> None:
    source, seen = make_topic(PARTITIONS), Seen()
    settings = QUICK if protocol == "classic" else {}
    app = make_app(group, source, seen, members=6, static_id="m", protocol=protocol, settings=settings)
    fill(brokers, source, 300)
    told = catch_up(app, brokers, per_record=True)
    assert set(seen.values()) == {1}
    assert committed(cluster, group, source) == dict.fromkeys(range(PARTITIONS), 300)
    assert [event.lag for event in of_kind(told, events.Started)] == [300 * PARTITIONS]
    assert [event.read for event in of_kind(told, events.Stopped)] == [300 * PARTITIONS]
