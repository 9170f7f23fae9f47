"""A breaker that pauses, on a real broker: a dependency is down under load."""

import time
from collections import Counter

from kafka_helpers import MakeTopic, committed, of_kind, produce, running, wait_for
from penstock import App, Breaker
from penstock.core.reports import events
from penstock.kafka import Cluster

PROBE_SECONDS = 1.0


def test_a_dependency_that_is_down_costs_no_record_and_no_membership(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, dlq = make_topic(2), f"{group}.dlq"
    app = App(group)
    is_up, calls, handled = True, 0, Counter[int]()

    @app.consume(
        source,
        dead_letter=dlq,
        order="key",
        concurrency="auto",
        breaker=Breaker(then="pause", probe=PROBE_SECONDS, on=(ConnectionError,)),
    )
    def ship(value: int) -> None:
        nonlocal calls
        calls += 1
        time.sleep(0.002)
        if not is_up:
            raise ConnectionRefusedError("down")
        handled[value] += 1

    def send(first: int, count: int) -> None:
        for key in range(6):
            produce(brokers, source, range(first + key, first + count, 6), partition=key % 2, key=b"%d" % key)

    send(0, 100)
    with running(app, brokers) as background:
        wait_for(lambda: len(handled) == 100, "the records before the outage")
        is_up = False
        send(100, 200)
        wait_for(lambda: of_kind(background.events, events.BreakerOpened), "the breaker")
        wait_for(lambda: sum(committed(cluster, group, source).values()) == 100, "commits go on")
        before = calls
        began = time.monotonic()
        wait_for(lambda: calls >= before + 3, "three tries")
        tried_for = time.monotonic() - began
        assert calls - before <= tried_for / PROBE_SECONDS + 60, "not more than those in progress, and one each second"
        is_up = True
        wait_for(lambda: len(handled) == 300, "all records after the outage")
        wait_for(lambda: sum(committed(cluster, group, source).values()) == 300, "all commits")
        assert of_kind(background.events, events.BreakerClosed)
        is_up = False
        send(300, 100)
        wait_for(lambda: len(of_kind(background.events, events.BreakerOpened)) == 2, "the breaker again")
    # The block ends with a clean stop while it is paused.
    assert set(handled.values()) == {1}, "nothing that succeeded is repeated"
    assert of_kind(background.events, events.DeadLettered) == []
    assert of_kind(background.events, events.Lost) == []
    assert len(of_kind(background.events, events.Assigned)) == 2
    with running(app, brokers) as background:
        is_up = True
        wait_for(lambda: len(handled) == 400, "what waited at the stop")
