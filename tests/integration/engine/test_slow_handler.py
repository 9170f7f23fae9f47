"""A handler slower than the poll interval keeps its membership, because polling continues meanwhile."""

import threading
from time import sleep

import pytest

from kafka_helpers import MakeTopic, committed, of_kind, produce, running, wait_for
from penstock import App
from penstock.core.reports import events
from penstock.engine.fetch import record_poller
from penstock.engine.fetch.fetch_positions import FetchPositions
from penstock.kafka import Cluster

# The shortest timeouts that the broker and the client allow.
POLL_SECONDS = 6


def test_a_handler_slower_than_the_poll_interval_costs_no_membership(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, never = make_topic(), threading.Event()
    app = App(group)
    limits = {"session.timeout.ms": POLL_SECONDS * 1_000, "max.poll.interval.ms": POLL_SECONDS * 1_000}

    @app.consume(source, settings=limits, commit_every="100ms")
    def handle(value: int) -> None:
        never.wait(POLL_SECONDS * 1.5 if value == 0 else 0)

    produce(brokers, source, range(3))
    with running(app, brokers) as member:
        wait_for(lambda: committed(cluster, group, source) == {0: 3}, "the slow record and those behind it")
        assert not of_kind(member.events, events.Lost)
        assert not of_kind(member.events, events.Revoked)
        assert not of_kind(member.events, events.CommitFailed)
        assert len(of_kind(member.events, events.Assigned)) == 1
        assert [event.offset for event in of_kind(member.events, events.Finished)] == [0, 1, 2]


def test_a_commit_while_there_is_no_room_does_not_pause_the_partitions(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pause discards the fetched records of the client, and costs about a second without records."""
    source, held = make_topic(), list[bool]()
    set_paused = FetchPositions.set_paused

    def watch(positions: FetchPositions, *, everything: bool) -> None:
        if positions.owned:
            held.append(everything)
        set_paused(positions, everything=everything)

    monkeypatch.setattr(FetchPositions, "set_paused", watch)
    # On a busy machine, handlers may not make room in the usual time. This test is not about that.
    monkeypatch.setattr(record_poller, "_FULL_SECONDS", 60)
    app = App(group)

    @app.consume(source, order="none", concurrency=10, max_in_flight=40, commit_every="10ms")
    def handle(value: int) -> None:
        sleep(0.01)

    produce(brokers, source, range(1_000))
    with running(app, brokers) as member:
        wait_for(lambda: committed(cluster, group, source) == {0: 1_000}, "all of them")
        assert len(of_kind(member.events, events.Committed)) > 10
        assert not any(held)
