"""Several handlers of one topic and group, on a real broker: one member, and one order per key across them."""

import os
import threading
from collections import Counter, defaultdict
from typing import Any

import pytest

import process_handlers
from kafka_helpers import (
    WAIT_SECONDS,
    MakeTopic,
    catch_up,
    lag,
    of_kind,
    produce,
    read_records,
    read_values,
    running,
    wait_for,
)
from penstock import App, Record, Reject, Retry
from penstock.core.reports import events
from penstock.kafka import Cluster, make_producer

KINDS = (b"created", b"cancelled", b"shipped")


def produce_kinds(brokers: str, topic: str, count: int, *, keys: int = 20) -> None:
    producer = make_producer(brokers, settings={})
    for number in range(count):
        kind = KINDS[number * 7 % 3]
        producer.produce(topic, value=b"%d" % number, key=b"key-%d" % (number % keys), headers={"type": kind})
    assert producer.flush(WAIT_SECONDS) == 0


def test_a_key_runs_one_at_a_time_and_in_order_across_two_routes_also_with_retries(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, app = make_topic(4), App(group)
    seen: defaultdict[bytes | None, list[int]] = defaultdict(list)
    busy: set[bytes | None] = set()
    overlaps: list[bytes | None] = []
    options: dict[str, Any] = {"order": "key", "concurrency": 16, "retry": Retry(attempts=2, first="10ms")}

    def work(value: int, record: Record) -> None:
        if record.key in busy:
            overlaps.append(record.key)
        busy.add(record.key)
        threading.Event().wait(0.001 * (value % 3))
        busy.discard(record.key)
        if value % 50 == 7 and record.attempt == 1:
            raise OSError("the key waits for the second attempt, and so do its records for the other route")
        seen[record.key].append(value)

    @app.consume(source, when={"type": "created"}, **options)
    def create(value: int, record: Record) -> None:
        work(value, record)

    @app.consume(source, **options)
    def rest(value: int, record: Record) -> None:
        work(value, record)

    produce_kinds(brokers, source, 1000)
    reported = catch_up(app, brokers, per_record=True)
    assert overlaps == []
    assert {key: sorted(values) for key, values in seen.items()} == seen
    assert sum(map(len, seen.values())) == 1000
    assert lag(cluster, group, source) == 0
    assert {event.member.rpartition("-")[0] for event in of_kind(reported, events.Assigned)}, "there is one member"
    assert len({event.member for event in of_kind(reported, events.Assigned)}) == 1
    ran = Counter(event.handler for event in of_kind(reported, events.Finished))
    assert ran == {"create": 334, "rest": 666}
    retried = Counter(event.handler for event in of_kind(reported, events.Retried))
    assert sum(retried.values()) == 20
    assert set(retried) == {"create", "rest"}
    last = {event.handler: event.read for event in of_kind(reported, events.RouteProgressed)}
    assert last == {"create": 334, "rest": 666}


def test_routes_run_in_worker_processes(brokers: str, group: str, make_topic: MakeTopic) -> None:
    source, out, app = make_topic(), make_topic(), App(group)
    options: dict[str, Any] = {"to": out, "workers": "process", "concurrency": 2, "order": "none"}
    app.consume(source, when=process_handlers.is_even, **options)(process_handlers.take_even)
    app.consume(source, **options)(process_handlers.take_rest)
    produce(brokers, source, range(20))
    reported = catch_up(app, brokers)
    lines = [(value or b"").decode().split() for value in read_values(brokers, out)]
    assert sorted((int(number), kind) for kind, number, _ in lines) == [
        (number, "rest" if number % 2 else "even") for number in range(20)
    ]
    assert os.getpid() not in {int(pid) for *_, pid in lines}
    last = {event.handler: (event.read, event.written) for event in of_kind(reported, events.RouteProgressed)}
    assert last == {"take_even": (10, 10), "take_rest": (10, 10)}


def test_routes_share_a_share_group(brokers: str, group: str, make_topic: MakeTopic) -> None:
    source, out, dlq, app = make_topic(), make_topic(), f"{group}.dlq", App(group)
    options: dict[str, Any] = {"dead_letter": dlq, "mode": "share", "order": "none"}

    @app.consume(source, when={"type": "created"}, to=out, **options)
    def create(value: int) -> int:
        return value

    @app.consume(source, when={"type": "cancelled"}, **options)
    def cancel(value: int) -> None:
        raise Reject("no")

    produce_kinds(brokers, source, 30)
    with running(app, brokers) as member:
        wait_for(lambda: len(read_values(brokers, out)) == 10, "all outputs")
        wait_for(lambda: len(read_values(brokers, dlq)) == 20, "all dead letters")
    errors = Counter(dict(record.headers)["penstock-dlq-error-type"] for record in read_records(brokers, dlq))
    assert errors == {b"Reject": 10, b"Unrouted": 10}
    letters = Counter(event.handler for event in of_kind(member.events, events.DeadLettered))
    assert letters == {"cancel": 10, "create+cancel": 10}


def test_routes_write_in_one_transaction_to_their_own_topics(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, receipts, refunds, app = make_topic(2), make_topic(), make_topic(), App(group)

    @app.consume(source, when={"type": "created"}, to=receipts, delivery="exactly-once")
    def create(value: int) -> int:
        return value

    @app.consume(source, to=refunds, delivery="exactly-once")
    def rest(value: int) -> int:
        return value

    produce_kinds(brokers, source, 90)
    catch_up(app, brokers)
    found = [sorted(int(value or b"") for value in read_values(brokers, topic)) for topic in (receipts, refunds)]
    assert [len(numbers) for numbers in found] == [30, 60]
    assert sorted([*found[0], *found[1]]) == list(range(90))
    assert lag(cluster, group, source) == 0


@pytest.mark.parametrize("members", [1, 3])
def test_counts_of_routes_are_those_of_all_members(
    brokers: str, group: str, make_topic: MakeTopic, members: int
) -> None:
    source, app = make_topic(6), App(group)

    @app.consume(source, when={"type": "created"}, members=members)
    def create(value: int) -> None: ...

    @app.consume(source, members=members)
    def rest(value: int) -> None: ...

    produce_kinds(brokers, source, 300)
    last = {event.handler: event.read for event in of_kind(catch_up(app, brokers), events.RouteProgressed)}
    assert last == {"create": 100, "rest": 200}
