"""Members come and go under every assignor and protocol, while records flow."""

import threading
from collections import Counter
from typing import Any

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
from penstock import App, Record
from penstock.assign import Assignor, CooperativeSticky
from penstock.core.reports import events
from penstock.engine.fetch import start_positions
from penstock.kafka import Cluster

PARTITIONS = 4

Seen = Counter[tuple[int, int]]


def make_app(
    group: str, source: str, seen: Seen, *, seconds: float = 0.005, until: threading.Event | None = None, **options: Any
) -> App:
    """Each record takes so many seconds, ``until`` the event comes."""
    app, done = App(group), until or threading.Event()

    @app.consume(source, **options)
    def handle(value: bytes, record: Record) -> None:
        done.wait(seconds)
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
        {"assignor": "sticky", "settings": QUICK},
        {"assignor": CooperativeSticky(), "settings": QUICK},
    ],
    ids=["range", "roundrobin", "cooperative-sticky", "consumer", "open-sticky", "open-cooperative-sticky"],
)
def test_a_member_joins_and_leaves_and_each_record_is_handled_once(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, options: dict[str, Any]
) -> None:
    source, seen, helped, records = make_topic(PARTITIONS), Seen(), threading.Event(), 500
    fill(brokers, source, records)
    # Slow enough that records are left for the second member, however long it takes to join.
    options = {**options, "seconds": 0.3, "until": helped}
    with running(make_app(group, source, seen, **options), brokers) as first:
        wait_for(lambda: len(seen) > PARTITIONS, "the first member to work")
        second = Running(make_app(group, source, seen, **options), brokers)
        wait_for(lambda: of_kind(second.events, events.Finished), "the second member to work")
        helped.set()
        second.stop()
        wait_for(lambda: len(seen) == PARTITIONS * records, "everything to be handled")
        moved = {event.partition for event in of_kind(first.events, events.Revoked)}
        eager = options.get("assignor") in ("range", "roundrobin", "sticky")
        assert len(moved) == (PARTITIONS if eager else 2), "eager revokes all, cooperative only what moves"
    assert set(seen.values()) == {1}
    assert committed(cluster, group, source) == dict.fromkeys(range(PARTITIONS), records)
    assert not of_kind([*first.events, *second.events], events.Error)


@pytest.mark.parametrize(
    "assignor", ["range", "cooperative-sticky", "sticky"], ids=["eager", "cooperative", "self-managed"]
)
def test_a_partition_that_was_paused_when_revoked_is_fetched_again_when_reassigned(
    brokers: str, group: str, make_topic: MakeTopic, assignor: str
) -> None:
    """The client remembers that a lost partition was paused, and pauses it again when it is assigned again."""
    source, gate, seen = make_topic(2), threading.Event(), Seen()
    options: dict[str, Any] = {"assignor": assignor, "settings": QUICK, "drain_timeout": 0.2}
    app = App(group)

    @app.consume(source, order="none", max_in_flight=4, concurrency=4, **options)
    def handle(value: bytes, record: Record) -> None:
        assert gate.wait(WAIT_SECONDS)
        seen[record.partition, record.offset] += 1

    for partition in range(2):
        produce(brokers, source, range(100), partition=partition)
    with running(app, brokers) as first:
        wait_for(lambda: len(of_kind(first.events, events.Dispatched)) >= 3, "so much in flight that it pauses")
        threading.Event().wait(1.0)  # the engine waits for a moment before it pauses
        second = Running(make_app(group, source, Seen(), seconds=30, **options), brokers)
        wait_for(lambda: of_kind(second.events, events.Dispatched), "the second member to own a partition")
        gate.set()
        stays = {0, 1} - {event.partition for event in of_kind(second.events, events.Dispatched)}
        wait_for(lambda: {(p, n) for p in stays for n in range(100)} <= {*seen}, "what stayed to be handled")
        second.stop()
        wait_for(lambda: len(seen) == 200, "what came back to be handled")


def test_retained_partitions_are_consumed_while_a_revoked_one_waits_for_a_slow_record(
    brokers: str, group: str, make_topic: MakeTopic
) -> None:
    source, gate, slow_one = make_topic(2), threading.Event(), threading.Event()
    moving: set[int] = set()

    def app(*, stuck: bool) -> App:
        made = App(group)

        @made.consume(source, settings=QUICK, on_revoked=lambda tps: moving.update(p for _, p in tps))
        def handle(value: int, record: Record) -> None:
            threading.Event().wait(0.005)
            if stuck and value == 200 and record.partition == 0:
                slow_one.set()
                assert gate.wait(WAIT_SECONDS)

        return made

    for partition in range(2):
        produce(brokers, source, range(1_000), partition=partition)
    with running(app(stuck=True), brokers) as first:
        assert slow_one.wait(WAIT_SECONDS)
        with running(app(stuck=False), brokers) as second:
            # The first member must give up partition 0, and waits for its record 200.
            wait_for(lambda: of_kind(second.events, events.Started), "the second member to start")

            def finished_of_1() -> int:
                return sum(event.partition == 1 for event in of_kind(first.events, events.Finished))

            before = finished_of_1()

            def goes_on() -> bool:
                # Write more each time, so that there are always records to handle.
                produce(brokers, source, range(20), partition=1)
                return finished_of_1() > before + 100

            wait_for(goes_on, "the partition that stays to go on")
            assert not of_kind(first.events, events.Revoked)
            gate.set()
            wait_for(lambda: of_kind(second.events, events.Finished), "the second member to work")
        assert moving == {0}
        assert len(of_kind(first.events, events.Revoked)) == 1
        numbers = {event.epoch for event in of_kind(first.events, events.Finished) if event.partition == 1}
        assert len(numbers) == 1, "the retained partition keeps its epoch"


@pytest.mark.parametrize(
    "options",
    [{"settings": QUICK}, {"assignor": CooperativeSticky(), "settings": QUICK}, {"protocol": "consumer"}],
    ids=["native", "self-managed", "consumer"],
)
def test_new_records_of_retained_partitions_are_handled_at_once_while_a_revoke_drains(
    brokers: str, group: str, make_topic: MakeTopic, options: dict[str, Any]
) -> None:
    source, gate, seen, stuck = make_topic(2), threading.Event(), Seen(), Counter[int]()
    written: Counter[int] = Counter()

    def app() -> App:
        made = App(group)

        @made.consume(source, order="none", drain_timeout="10m", **options)
        def handle(value: int, record: Record) -> None:
            if value == 0:
                stuck[record.partition] += 1
                assert gate.wait(WAIT_SECONDS)
            seen[record.partition, record.offset] += 1

        return made

    def write(partition: int, count: int, value: int = 1) -> None:
        produce(brokers, source, [value] * count, partition=partition)
        written[partition] += value * count

    def behind() -> set[int]:
        """The partitions with unhandled records, not counting the records that wait at the gate."""
        return {p for p in range(2) if sum(tp == p for tp, _ in seen) < written[p]}

    def one_drains_while_the_other_goes_on() -> bool:
        write(0, 1)
        write(1, 1)
        threading.Event().wait(2)
        going = behind()
        if len(going) != 1:  # the drain has not begun, or written records are still being fetched
            return False
        (staying,) = {0, 1} - going
        write(staying, 20)
        wait_for(lambda: staying not in behind(), "what was written where it stays")
        return behind() == going

    with running(app(), brokers) as first:
        wait_for(lambda: of_kind(first.events, events.Assigned), "an assignment")
        for partition in range(2):  # a stuck record in both, because either may be revoked
            write(partition, 1, 0)
        wait_for(lambda: len(stuck) == 2, "a stuck record in each partition")
        with running(app(), brokers):
            wait_for(one_drains_while_the_other_goes_on, "a partition to drain while the other one goes on")
            gate.set()
            wait_for(lambda: not behind() and len(seen) == sum(written.values()) + 2, "all to be handled")
    assert set(seen.values()) == {1}, "each record once"


@pytest.mark.parametrize("assignor", [None, CooperativeSticky()], ids=["native", "self-managed"])
def test_a_static_member_that_is_back_in_time_is_not_noticed_by_the_other(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, assignor: Assignor | None
) -> None:
    source, seen = make_topic(PARTITIONS), Seen()
    options: dict[str, Any] = {"assignor": assignor, "settings": QUICK}
    with running(make_app(group, source, seen, static_id="one", **options), brokers) as first:
        wait_for(lambda: len(of_kind(first.events, events.Assigned)) == PARTITIONS, "the first assignment")
        other = make_app(group, source, seen, static_id="two", **options)
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


@pytest.mark.parametrize("assignor", [None, "consistent-hash"], ids=["native", "self-managed"])
def test_a_static_id_that_is_taken_over_stops_the_app_with_a_reason(
    brokers: str, group: str, make_topic: MakeTopic, assignor: str | None
) -> None:
    options: dict[str, Any] = {"static_id": "same", "settings": QUICK, "assignor": assignor}
    source = make_topic()
    old = Running(make_app(group, source, Seen(), **options), brokers)
    wait_for(lambda: of_kind(old.events, events.Assigned), "the first to be a member")
    with running(make_app(group, source, Seen(), **options), brokers) as new:
        wait_for(lambda: of_kind(new.events, events.Assigned), "the second to take its place")
        old.join()
    assert "has the static_id 'same'" in str(old.error)


def test_with_the_new_protocol_a_static_id_that_is_still_taken_stops_the_app_with_a_reason(
    brokers: str, group: str, make_topic: MakeTopic
) -> None:
    options: dict[str, Any] = {"static_id": "same", "protocol": "consumer"}
    source = make_topic()
    with running(make_app(group, source, Seen(), **options), brokers) as old:
        wait_for(lambda: of_kind(old.events, events.Assigned), "the first to be a member")
        new = Running(make_app(group, source, Seen(), **options), brokers)
        new.join()
        assert old.is_alive
    assert "still has a member with the static_id" in str(new.error)
    assert "If that process was killed, start again after its session timeout" in str(getattr(new.error, "hint", ""))


@pytest.mark.parametrize(
    "options",
    [{"settings": QUICK}, {"protocol": "consumer"}, {"settings": QUICK, "assignor": "rack-near", "rack": "r1"}],
    ids=["classic", "consumer", "self-managed"],
)
def test_more_members_than_partitions_in_one_process_catch_up_together(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, options: dict[str, Any]
) -> None:
    source, seen = make_topic(PARTITIONS), Seen()
    app = make_app(group, source, seen, members=6, static_id="m", **options)
    fill(brokers, source, 300)
    reported = catch_up(app, brokers, per_record=True)
    assert set(seen.values()) == {1}
    assert committed(cluster, group, source) == dict.fromkeys(range(PARTITIONS), 300)
    assert [event.lag for event in of_kind(reported, events.Started)] == [300 * PARTITIONS]
    assert [event.read for event in of_kind(reported, events.Stopped)] == [300 * PARTITIONS]


def test_a_broker_that_does_not_return_committed_offsets_in_time_is_asked_again(
    brokers: str, group: str, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The client raises this error inside its callback; poll then raised an object that is no exception.
    source, app, seen = make_topic(), App(group), list[int]()
    app.consume(source)(lambda value: seen.append(int(value)))
    monkeypatch.setattr(start_positions, "_ANSWER_SECONDS", 0.0)
    produce(brokers, source, range(10))
    with running(app, brokers) as member:
        wait_for(lambda: of_kind(member.events, events.Error), "the event")
        monkeypatch.undo()
        wait_for(lambda: len(seen) == 10, "all records")
        assert not any(event.fatal for event in of_kind(member.events, events.Error))
    assert member.error is None
