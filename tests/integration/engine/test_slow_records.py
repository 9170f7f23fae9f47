"""Handlers of very different speed on one partition: the commit point follows, and a stop costs no repeats."""

import random
import threading
from collections import Counter, defaultdict

import pytest

from kafka_helpers import WAIT_SECONDS, MakeTopic, Running, catch_up, committed, lag, of_kind, wait_for
from penstock import App, Record
from penstock.core.reports import events
from penstock.core.scheduling.lanes import Order
from penstock.kafka import Cluster, make_producer

RECORDS = 1_000


def produce_keys(brokers: str, topic: str) -> None:
    producer = make_producer(brokers, settings={})
    for number in range(RECORDS):
        producer.produce(topic, value=b"%d" % number, key=b"key-%d" % (number % 100), partition=0)
    assert producer.flush(WAIT_SECONDS) == 0


@pytest.mark.parametrize("order", ["key", "none"])
def test_the_commit_point_follows_handlers_of_random_speed_and_a_restart_repeats_nothing(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, order: Order
) -> None:
    source, seen = make_topic(), Counter[int]()
    by_key: defaultdict[bytes | None, list[int]] = defaultdict(list)
    app = App(group)

    @app.consume(source, order=order, concurrency=50, commit_every="100ms")
    def handle(value: int, record: Record) -> None:
        threading.Event().wait(random.uniform(0.01, 0.1))
        seen[value] += 1
        by_key[record.key].append(value)

    produce_keys(brokers, source)
    member = Running(app, brokers)
    # Several commits, each higher than the last, happen while records are in progress.
    wait_for(lambda: len(points(member)) > 3 and len(seen) > 300, "commits that follow")
    member.stop()
    handled = len(seen)
    assert 300 < handled < RECORDS, "stopped before the end"
    assert points(member) == sorted(points(member))
    assert committed(cluster, group, source)[0] <= handled
    catch_up(app, brokers)
    assert seen == Counter(range(RECORDS))
    assert lag(cluster, group, source) == 0
    if order == "key":
        assert all(values == sorted(values) for values in by_key.values())


def test_a_record_that_is_stuck_among_quick_ones_holds_up_its_own_key_and_no_other(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, seen, release = make_topic(), Counter[int](), threading.Event()
    by_key: defaultdict[bytes | None, list[int]] = defaultdict(list)
    stuck = RECORDS // 2
    app = App(group)

    @app.consume(source, order="key", concurrency=4, commit_every="100ms")
    def handle(value: int, record: Record) -> None:
        if value == stuck:
            release.wait()
        seen[value] += 1
        by_key[record.key].append(value)

    produce_keys(brokers, source)
    behind = {number for number in range(stuck, RECORDS) if number % 100 == stuck % 100}
    member = Running(app, brokers)
    try:
        wait_for(lambda: len(seen) == RECORDS - len(behind), "all but the stuck one and those behind it")
        assert not behind & seen.keys()
    finally:
        release.set()
    wait_for(lambda: committed(cluster, group, source) == {0: RECORDS}, "all of them")
    member.stop()
    assert seen == Counter(range(RECORDS))
    assert all(values == sorted(values) for values in by_key.values())


def points(member: Running) -> list[int]:
    """The committed offsets, each once."""
    return list(dict.fromkeys(event.offset for event in of_kind(member.events, events.Committed) if event.offset))
