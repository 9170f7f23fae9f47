"""A handler slower than the poll interval: polling goes on without it, so it costs no membership."""

import threading

from bed import MakeTopic, committed, of_kind, produce, running, wait_for
from penstock import App
from penstock.core import events
from penstock.kafka import Cluster

# The least that the broker and the client allow.
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
