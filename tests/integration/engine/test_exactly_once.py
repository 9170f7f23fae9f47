"""delivery="exactly-once" on the local engine: a read-committed reader finds each output once, on a real broker."""

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kafka_helpers import (
    WAIT_SECONDS,
    MakeTopic,
    Running,
    catch_up,
    committed,
    of_kind,
    produce,
    read_values,
    running,
    wait_for,
)
from penstock import App, Reject, Skip, by
from penstock.assign import CooperativeSticky
from penstock.core.reports import events
from penstock.engine.membership.self_managed_membership import SelfManagedMembership
from penstock.engine.produce.transactor import Transactor
from penstock.errors import ServerError
from penstock.kafka import Cluster, make_producer
from penstock.kafka.client import transactions
from penstock.kafka.client.kafka_python_settings import kafka_python_config
from penstock.kafka.client.transactions import Transaction
from penstock.kafka.group.coordinator import CoordinatorNetwork, Identity
from penstock.kafka.group.self_managed_member import SelfManagedMember


def numbers(brokers: str, topic: str) -> list[int]:
    return sorted(int(value or b"-1") for value in read_values(brokers, topic))


@pytest.mark.parametrize(
    "options",
    [
        {"order": "partition"},
        {"order": "key"},
        {"order": "none"},
        {"order": "key", "assignor": "sticky", "static_id": "till"},
        {"order": "none", "assignor": CooperativeSticky(), "members": 2},
    ],
    ids=["partition", "key", "none", "eager open", "cooperative open"],
)
def test_outputs_and_dead_letters_are_there_once_and_the_group_is_at_the_end(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, options: dict[str, Any]
) -> None:
    source, out, dlq = make_topic(2), f"{group}.out", f"{group}.dlq"
    app = App(group)

    @app.consume(source, to=out, dead_letter=dlq, delivery="exactly-once", concurrency=8, **options)
    def handle(value: int) -> int:
        if value % 10 == 1:
            raise Skip
        if value % 10 == 2:
            raise Reject("no")
        return value

    for partition in range(2):
        produce(brokers, source, range(500), partition=partition)
    seen = catch_up(app, brokers)
    expected = [n for n in range(500) if n % 10 not in {1, 2}]
    assert numbers(brokers, out) == sorted(expected * 2)
    assert numbers(brokers, dlq) == sorted([n for n in range(500) if n % 10 == 2] * 2)
    assert committed(cluster, group, source) == {0: 500, 1: 500}
    assert not of_kind(seen, events.CommitFailed)


def slow_copy(group: str, source: str, out: str, *, assignor: str | None = None) -> App:
    """An app with many small transactions."""
    app = App(group)

    @app.consume(
        source, to=out, delivery="exactly-once", order="none", concurrency=4, commit_every="20ms", assignor=assignor
    )
    def handle(value: int) -> int:
        threading.Event().wait(0.002)
        return value

    return app


@pytest.mark.parametrize("assignor", [None, "lag-balanced"], ids=["native", "self-managed"])
def test_after_a_failed_transaction_records_are_read_again_from_the_committed_offsets(
    brokers: str,
    cluster: Cluster,
    group: str,
    make_topic: MakeTopic,
    monkeypatch: pytest.MonkeyPatch,
    assignor: str | None,
) -> None:
    source, out = make_topic(), f"{group}.out"
    commit, failed = Transaction.commit, list[int]()

    def fail_at_times(self: Transaction, *args: object, **options: object) -> None:
        failed.append(len(failed))
        if len(failed) in {2, 3, 7}:
            raise ServerError("The broker was away.", hint="Wait.")
        commit(self, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Transaction, "commit", fail_at_times)
    app = slow_copy(group, source, out, assignor=assignor)
    produce(brokers, source, range(600))
    with running(app, brokers) as member:
        wait_for(lambda: committed(cluster, group, source) == {0: 600}, "all to be committed")
        assert len(of_kind(member.events, events.Lost)) >= 2, "each failure gives up all partitions"
        assert not any(event.fatal for event in of_kind(member.events, events.Error))
        if assignor is not None:
            assert len(of_kind(member.events, events.Rebalanced)) == 1, (
                "a self-managed member does that without a rebalance"
            )
    assert numbers(brokers, out) == list(range(600))


def test_the_output_of_a_deduplicated_record_is_there_once_although_its_first_transaction_failed(
    brokers: str,
    cluster: Cluster,
    group: str,
    make_topic: MakeTopic,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Its id is remembered before the commit. It is no duplicate of itself when it is read again after the failure."""
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    source, out, app, commit, commits = make_topic(), f"{group}.out", App(group), Transaction.commit, [0]

    def fail_first(self: Transaction, *args: object, **options: object) -> None:
        commits[0] += 1
        if commits[0] == 1:
            raise ServerError("The broker was away.", hint="Wait.")
        commit(self, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Transaction, "commit", fail_first)

    @app.consume(source, to=out, delivery="exactly-once", dedupe=by.key(for_="1d"))
    def handle(value: int) -> int:
        return value

    producer = make_producer(brokers, settings={})
    for number in range(200):  # each key twice
        producer.produce(source, b"%d" % number, b"%d" % (number // 2))
    producer.flush(WAIT_SECONDS)
    with running(app, brokers):
        wait_for(lambda: committed(cluster, group, source) == {0: 200}, "all to be committed")
    assert commits[0] > 1
    assert numbers(brokers, out) == list(range(0, 200, 2))


class LosingRequests:
    """A producer that never returns from some calls, which can happen when the broker restarts."""

    sent = 0

    def __init__(self, producer: Any) -> None:
        self._producer = producer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)

    def send_offsets_to_transaction(self, *args: Any) -> None:
        LosingRequests.sent += 1
        if LosingRequests.sent in {1, 2}:
            threading.Event().wait()
        self._producer.send_offsets_to_transaction(*args)


def test_a_client_call_that_never_returns_costs_its_transaction_and_nothing_else(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = make_topic(), f"{group}.out"
    make: Any = make_producer
    monkeypatch.setattr(transactions, "make_producer", lambda *args, **options: LosingRequests(make(*args, **options)))
    monkeypatch.setattr(transactions, "_OFFSETS_SECONDS", 10.0)
    monkeypatch.setattr(transactions, "_GRACE_SECONDS", 1.0)
    app = slow_copy(group, source, out)
    produce(brokers, source, range(600))
    with running(app, brokers) as member:
        wait_for(lambda: committed(cluster, group, source) == {0: 600}, "all to be committed")
        assert not any(event.fatal for event in of_kind(member.events, events.Error))
    assert LosingRequests.sent > 2
    assert numbers(brokers, out) == list(range(600))


def test_handlers_continue_while_a_transaction_is_committed(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit here ends only after more records are handled, so handlers must not wait for it."""
    source, out, app = make_topic(), make_topic(), App(group)
    finish, committing, handled_more = Transaction._finish, threading.Event(), threading.Event()

    def wait_and_finish(self: Transaction) -> None:
        committing.set()
        assert handled_more.wait(WAIT_SECONDS)
        finish(self)

    monkeypatch.setattr(Transaction, "_finish", wait_and_finish)

    # The long limit keeps the open transaction alive, however long the test takes.
    @app.consume(source, to=out, delivery="exactly-once", settings={"transaction.timeout.ms": 600_000})
    def handle(value: int) -> int:
        if value == 19:
            handled_more.set()
        return value

    produce(brokers, source, range(10))
    with running(app, brokers):
        assert committing.wait(WAIT_SECONDS)
        produce(brokers, source, range(10, 20))
        wait_for(lambda: committed(cluster, group, source) == {0: 20}, "all to be committed")
    assert numbers(brokers, out) == list(range(20))


def test_uncommitted_outputs_are_invisible_to_read_committed_readers(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out, app = make_topic(), make_topic(), App(group)
    held = threading.Event()
    authorize = Transactor.authorize
    monkeypatch.setattr(Transactor, "authorize", lambda self, consumer: held.is_set() and authorize(self, consumer))

    @app.consume(source, to=out, delivery="exactly-once")
    def handle(value: int) -> int:
        return value

    produce(brokers, source, range(10))
    with running(app, brokers) as member:
        wait_for(lambda: len(of_kind(member.events, events.Finished)) == 10, "all to be handled")
        assert read_values(brokers, out) == []
        assert committed(cluster, group, source) == {}
        held.set()
    assert numbers(brokers, out) == list(range(10))
    assert committed(cluster, group, source) == {0: 10}


def test_an_output_that_is_too_large_is_a_dead_letter_and_its_neighbours_are_there_once(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, out, dlq, app = make_topic(), make_topic(**{"max.message.bytes": "1000"}), f"{group}.dlq", App(group)

    @app.consume(
        source, to=out, dead_letter=dlq, delivery="exactly-once", settings={"compression.type": "none"}, order="none"
    )
    def handle(value: int) -> bytes:
        return b"%d" % value * (1 if value % 7 else 2_000)

    produce(brokers, source, range(1, 50))
    seen = catch_up(app, brokers)
    assert numbers(brokers, out) == [n for n in range(1, 50) if n % 7]
    assert numbers(brokers, dlq) == [n for n in range(1, 50) if not n % 7]
    assert committed(cluster, group, source) == {0: 49}
    reasons = {event.reason.split(":")[0] for event in of_kind(seen, events.DeadLettered)}
    assert reasons == {"OutputRefused"}


@pytest.mark.parametrize("assignor", [None, "sticky", CooperativeSticky()], ids=["native", "eager", "cooperative"])
def test_partitions_move_between_members_and_every_output_is_there_once(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, assignor: Any
) -> None:
    source, out = make_topic(4), f"{group}.out"

    def make() -> App:
        app = App(group)

        @app.consume(
            source,
            to=out,
            delivery="exactly-once",
            order="key",
            concurrency=8,
            assignor=assignor,
            settings={"heartbeat.interval.ms": 300},
        )
        def handle(value: int) -> int:
            threading.Event().wait(0.001)
            return value

        return app

    for partition in range(4):
        produce(brokers, source, range(partition * 1_000, (partition + 1) * 1_000), partition=partition)
    ends = dict.fromkeys(range(4), 1_000)
    with running(make(), brokers) as first:
        wait_for(lambda: len(of_kind(first.events, events.Finished)) > 200, "the first to work")
        second = Running(make(), brokers)
        wait_for(lambda: of_kind(second.events, events.Finished) or committed(cluster, group, source) == ends, "help")
        second.stop()
        wait_for(lambda: committed(cluster, group, source) == ends, "all to be committed")
    assert numbers(brokers, out) == list(range(4_000))


@pytest.mark.parametrize("is_back", [False, True], ids=["cut off", "a member again"])
def test_a_transaction_of_a_removed_self_managed_member_is_not_committed(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch, *, is_back: bool
) -> None:
    source, out = make_topic(), f"{group}.out"
    # Its transaction stops before the commit, and later it sends no heartbeats, as if its process were frozen.
    held = {"authorize"}
    _hold_first(monkeypatch, Transactor, "authorize", held)
    _hold_first(monkeypatch, SelfManagedMember, "_heartbeat", held)
    _hold_first(monkeypatch, SelfManagedMembership, "attend", held)

    def make() -> App:
        app = App(group)

        @app.consume(source, to=out, delivery="exactly-once", assignor=CooperativeSticky())
        def handle(value: int) -> int:
            return value

        return app

    produce(brokers, source, range(10))
    with running(make(), brokers) as zombie:
        wait_for(lambda: len(of_kind(zombie.events, events.Finished)) == 10, "all to be handled, and none committed")
        held.add("_heartbeat")
        _throw_out(brokers, group, zombie)
        with running(make(), brokers) as heir:
            wait_for(lambda: committed(cluster, group, source) == {0: 10}, "its heir to do the same")
            if is_back:
                held.add("attend")  # so that its fetcher does not notice the new membership
                held.remove("_heartbeat")
                wait_for(lambda: len(of_kind(heir.events, events.Rebalanced)) == 2, "it to be a member again")
            held.remove("authorize")
            reported = (events.Committed, events.CommitFailed)
            wait_for(lambda: any(of_kind(zombie.events, kind) for kind in reported), "an answer to its commit")
            held.clear()
            wait_for(lambda: of_kind(zombie.events, events.Lost), "it to learn of its loss")
        assert not of_kind(zombie.events, events.Committed)
        assert not of_kind(heir.events, events.Error)
    assert Counter(numbers(brokers, out)) == Counter(range(10))


def _hold_first(patch: pytest.MonkeyPatch, kind: type, method: str, held: set[str]) -> None:
    """Make this method of the first such object do nothing while ``held`` contains it."""
    do, first = getattr(kind, method), list[object]()

    def maybe(self: object, *args: object) -> object:
        first[:] = first or [self]
        if self is first[0] and method in held:
            return threading.Event().wait(0.02)  # its caller calls it again at once
        return do(self, *args)

    patch.setattr(kind, method, maybe)


def _throw_out(brokers: str, group: str, member: Running) -> None:
    (joined,) = [event.rebalance for event in of_kind(member.events, events.Rebalanced)]
    network = CoordinatorNetwork(kafka_python_config(brokers, {}))
    network.connect(group).leave(Identity(group, joined.member_id or "", -1, None), "a test throws it out")
    network.close()
