"""Faults while slices run: two attempts at each, brokers that go away, members and drivers that take partitions."""

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from uuid import uuid4

import psutil
import pytest

from cli_helpers import Joined
from kafka_helpers import WAIT_SECONDS, MakeTopic, committed, of_kind, produce, read_values, wait_for
from penstock import App, Retry
from penstock.core.reports import events
from penstock.devkit import Embedded, UpOptions
from penstock.kafka import Cluster
from penstock.kafka.client.transactions import Transaction, group_metadata, transactional_id
from penstock.spark.tasks import worker_state
from thread_jobs import OnThreads, Start, no_spark, run_on_threads

RECORDS = 200
SOON = Retry(attempts=50, first="100ms", factor=1)
COOPERATIVE = {"partition.assignment.strategy": "cooperative-sticky"}


class Held:
    """Where handlers wait; handlers are pickled, and what they import is not."""

    entered: set[int] = set()  # noqa: RUF012
    go_on = threading.Event()


def unsteady(value: int) -> int:
    time.sleep(random.uniform(0, 0.002))
    return value


def held_at_tens(value: int) -> int:
    if value % 10 == 0:
        Held.entered.add(value)
        assert Held.go_on.wait(WAIT_SECONDS)
    return value


def app_of(group: str, source: str, handler: Any, **options: Any) -> App:
    app = App(group)
    app.consume(source, to=f"{group}.out", **{"restart": SOON, **options})(handler)
    return app


def outputs(brokers: str, group: str) -> list[int]:
    return sorted(int(value or b"") for value in read_values(brokers, f"{group}.out"))


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    Held.entered, Held.go_on = set(), threading.Event()
    yield
    worker_state._states.clear()  # as with the end of a worker process


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """A broker of these tests alone, which they may kill."""
    kafka = Embedded(tmp_path_factory.mktemp("mortal"))
    try:
        kafka.up(UpOptions(port=0))
        yield kafka
    finally:
        kafka.down()


# Speculation: two attempts at each task run at once, and the first to succeed counts.


def test_two_attempts_at_each_slice_write_each_output_once(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = make_topic(2)
    for partition in range(2):
        produce(brokers, source, range(partition, RECORDS, 2), partition=partition)
    app = app_of(group, source, unsteady, delivery="exactly-once", max_micro_batch=20)
    seen = run_on_threads(app, brokers, patch=monkeypatch, attempts=2, until_caught_up=True)
    assert outputs(brokers, group) == list(range(RECORDS))
    assert committed(cluster, group, source) == {0: RECORDS / 2, 1: RECORDS / 2}
    assert not of_kind(seen, events.Restarting), "an attempt that was fenced is no failure"


def test_without_transactions_two_attempts_lose_nothing(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = make_topic(2)
    for partition in range(2):
        produce(brokers, source, range(partition, RECORDS, 2), partition=partition)
    app = app_of(group, source, unsteady, max_micro_batch=20)
    run_on_threads(app, brokers, patch=monkeypatch, attempts=2, until_caught_up=True)
    assert set(outputs(brokers, group)) == set(range(RECORDS))
    assert committed(cluster, group, source) == {0: RECORDS / 2, 1: RECORDS / 2}


# The broker goes away.


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_a_broker_that_dies_while_slices_run_costs_no_record(
    mortal: Embedded, monkeypatch: pytest.MonkeyPatch, delivery: str
) -> None:
    brokers, group, source = str(mortal.bootstrap()), f"group-{uuid4().hex[:8]}", f"topic-{uuid4().hex[:8]}"
    cluster = Cluster(brokers)
    cluster.create_topics([source], partitions=2)
    for partition in range(2):
        produce(brokers, source, range(partition * 10, partition * 10 + 10), partition=partition)
    with no_spark(monkeypatch):
        app = OnThreads(app_of(group, source, held_at_tens, delivery=delivery), brokers)
        wait_for(lambda: Held.entered == {0, 10}, "both slices to run")
        (pid,) = [server.pid for server in mortal.status().brokers]
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not psutil.pid_exists(pid), "the broker to be gone")
        Held.go_on.set()
        mortal.up()
        wait_for(lambda: committed(cluster, group, source) == {0: 10, 1: 10}, "the end of both partitions")
        for partition in range(2):
            produce(brokers, source, [20 + partition], partition=partition)
        wait_for(lambda: committed(cluster, group, source) == {0: 11, 1: 11}, "what came afterwards")
        app.stop()
    found = outputs(brokers, group)
    assert set(found) == set(range(22))
    if delivery == "exactly-once":
        assert len(found) == 22


# Others in the group.


def test_a_rebalance_by_a_foreign_member_in_the_middle_of_slices_doubles_and_loses_nothing(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, start: Start
) -> None:
    source = make_topic(2)
    for partition in range(2):
        produce(brokers, source, range(partition * 10, partition * 10 + 10), partition=partition)
    app = app_of(group, source, held_at_tens, delivery="exactly-once", drain_timeout="100ms")
    with start(app) as running_app:
        wait_for(lambda: Held.entered == {0, 10}, "both slices to run")
        with closing(Joined(brokers, group, source, **COOPERATIVE)):
            (revoked,) = of_kind(running_app.events, events.Revoked)
            taken, kept = revoked.partition, 1 - revoked.partition
            Held.go_on.set()
            wait_for(lambda: committed(cluster, group, source).get(kept) == 10, "the partition that stayed")
            assert taken not in committed(cluster, group, source), "its transaction began before the rebalance"
        wait_for(lambda: committed(cluster, group, source) == {0: 10, 1: 10}, "the partition that came back")
    assert outputs(brokers, group) == list(range(20))


def test_a_second_driver_that_starts_in_the_middle_of_slices_doubles_nothing(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, start: Start
) -> None:
    source = make_topic(2)
    for partition in range(2):
        produce(brokers, source, range(partition * 10, partition * 10 + 10), partition=partition)
    first, other = (
        app_of(group, source, held_at_tens, delivery="exactly-once", drain_timeout="100ms") for _ in range(2)
    )
    with start(first):
        wait_for(lambda: Held.entered == {0, 10}, "both slices to run")
        second = OnThreads(other, brokers)
        wait_for(lambda: of_kind(second.events, events.Assigned), "the second driver to get a partition")
        Held.go_on.set()
        wait_for(lambda: committed(cluster, group, source) == {0: 10, 1: 10}, "the work of both")
        second.stop()
    assert outputs(brokers, group) == list(range(20))


def test_a_partition_that_comes_back_gets_a_new_producer_because_its_owner_meanwhile_has_fenced_the_old_one(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, start: Start
) -> None:
    source = make_topic(2)
    app = app_of(group, source, unsteady, delivery="exactly-once")
    with start(app) as running_app:
        for partition in range(2):
            produce(brokers, source, [partition], partition=partition)
        wait_for(lambda: committed(cluster, group, source) == {0: 1, 1: 1}, "the first slices")
        with closing(Joined(brokers, group, source, **COOPERATIVE)):
            (revoked,) = of_kind(running_app.events, events.Revoked)
            name = transactional_id(group, source, revoked.partition)
            outside = group_metadata(brokers, group, settings={})
            Transaction(brokers, name, group=outside, settings={}).fence()
        wait_for(lambda: len(of_kind(running_app.events, events.Assigned)) == 3, "the partition that comes back")
        for partition in range(2):
            produce(brokers, source, [2 + partition], partition=partition)
        wait_for(lambda: committed(cluster, group, source) == {0: 2, 1: 2}, "the slices afterwards")
        assert not of_kind(running_app.events, events.Restarting)
    assert outputs(brokers, group) == [0, 1, 2, 3]
