"""Handlers of very different speed on one partition: the commit point follows, and a stop costs no repeats."""

import random
import threading
from collections import Counter, defaultdict

import pytest

from bed import MakeTopic, Running, catch_up, committed, lag, of_kind, wait_for
from penstock import App, Record
from penstock.core import events
from penstock.core.lanes import Order
from penstock.kafka import Cluster, make_producer

RECORDS = 1_000


def produce_keys(brokers: str, topic: str) -> None:
    producer = make_producer(brokers, settings={})
    for number in range(RECORDS):
        producer.produce(topic, value=b"%d" % number, key=b"key-%d" % (number % 100), partition=0)
    assert producer.flush(60) == 0


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
    # Not only at the end: several commits, each further than the last, while records are in progress.
    wait_for(lambda: len(points(member)) > 3 and len(seen) > 300, "commits that follow")
    member.stop()
    handled = len(seen)
    assert 300 < handled < RECORDS, "stopped in the middle"
    assert points(member) == sorted(points(member))
    assert committed(cluster, group, source)[0] <= handled
    catch_up(app, brokers)
    assert seen == Counter(range(RECORDS))
    assert lag(cluster, group, source) == 0
    if order == "key":
        assert all(values == sorted(values) for values in by_key.values())


def points(member: Running) -> list[int]:
    """The committed offsets, each once."""
    return list(dict.fromkeys(event.offset for event in of_kind(member.events, events.Committed) if event.offset))
