"""Several outputs for a record on a real broker: what happens if one of them cannot be written."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kafka_helpers import (
    MakeTopic,
    catch_up,
    committed,
    of_kind,
    produce,
    read_records,
    read_values,
    running,
    wait_for,
)
from penstock import App, Out
from penstock.core.reports import events
from penstock.errors import TopicError
from penstock.kafka import Cluster

# The broker measures what arrives, so nothing here may shrink on its way.
PLAIN = {"compression.type": "none"}
MOMENT = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
FUTURE = datetime.now(UTC) + timedelta(days=2)


def test_an_output_has_the_key_partition_headers_and_timestamp_of_its_out(
    brokers: str, group: str, make_topic: MakeTopic
) -> None:
    source, audit, app = make_topic(), make_topic(3), App(group)

    @app.consume(source)
    def handle(value: int) -> Out:
        return Out(value, to=audit, key=value, partition=2, headers={"raw": b"\xff"}, timestamp=MOMENT)

    produce(brokers, source, [5])
    catch_up(app, brokers)
    (record,) = read_records(brokers, audit)
    assert (record.partition, record.key, record.value, record.headers) == (2, b"5", b"5", (("raw", b"\xff"),))
    assert record.timestamp == MOMENT


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_a_record_of_which_one_output_is_too_large_becomes_a_dead_letter_as_a_whole(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, delivery: Any
) -> None:
    source, out, small, dlq = make_topic(), make_topic(), make_topic(**{"max.message.bytes": "700"}), make_topic()
    app = App(group)

    @app.consume(source, to=[out, small], dead_letter=dlq, delivery=delivery, settings=PLAIN)
    def handle(value: int) -> Iterator[int | Out]:
        yield value
        yield Out("x" * 1_000 if value % 3 == 1 else value, to=small)
        yield Out(value, to=small)

    produce(brokers, source, range(9))
    seen = catch_up(app, brokers)
    kept = [n for n in range(9) if n % 3 != 1]
    assert sorted(int(value or b"") for value in read_values(brokers, dlq)) == [1, 4, 7]
    assert len(of_kind(seen, events.DeadLettered)) == 3
    written = sorted(int(value or b"") for value in read_values(brokers, out))
    assert written == (kept if delivery == "exactly-once" else list(range(9)))
    if delivery == "exactly-once":
        assert sorted(int(value or b"") for value in read_values(brokers, small)) == sorted(kept * 2)
    (stopped,) = of_kind(seen, events.Stopped)
    assert (stopped.read, stopped.written, stopped.dead_lettered) == (9, 18, 3)
    assert committed(cluster, group, source) == {0: 9}


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_a_timestamp_that_the_broker_does_not_accept_fails_its_record_only(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, delivery: Any
) -> None:
    source, out, dlq, app = make_topic(), make_topic(), make_topic(), App(group)

    @app.consume(source, to=out, dead_letter=dlq, delivery=delivery)
    def handle(value: int) -> Out:
        return Out(value, timestamp=FUTURE if value == 2 else MOMENT)

    produce(brokers, source, range(5))
    catch_up(app, brokers)
    assert sorted(read_values(brokers, out), key=str) == [b"0", b"1", b"3", b"4"]
    assert read_values(brokers, dlq) == [b"2"]
    assert committed(cluster, group, source) == {0: 5}


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_a_missing_topic_that_only_an_out_names_stops_the_app(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, delivery: Any
) -> None:
    source, app = make_topic(), App(group)

    # The client looks for a new topic for as long as this.
    @app.consume(source, delivery=delivery, settings={"topic.metadata.propagation.max.ms": 1_000})
    def handle(value: int) -> Out:
        return Out(value, to=f"{group}.missing")

    produce(brokers, source, [5])
    with pytest.raises(TopicError, match=f"{group}.missing"):
        catch_up(app, brokers)
    assert committed(cluster, group, source).get(0, 0) == 0


def test_topics_of_to_are_created(brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic) -> None:
    source, app = make_topic(2), App(group)

    @app.consume(source, to=[f"{group}.out", f"{group}.audit"])
    def handle(value: int) -> None: ...

    seen = catch_up(app, brokers)
    assert [event.topic for event in of_kind(seen, events.TopicCreated)] == [f"{group}.out", f"{group}.audit"]
    assert cluster.topics()[f"{group}.audit"] == 2


def test_a_share_group_acknowledges_a_record_when_the_broker_has_all_of_its_outputs(
    brokers: str, group: str, make_topic: MakeTopic
) -> None:
    source, out, small, dlq = make_topic(), make_topic(), make_topic(**{"max.message.bytes": "700"}), make_topic()
    app = App(group)

    @app.consume(source, to=[out, small], dead_letter=dlq, mode="share", order="none", settings=PLAIN)
    def handle(value: int) -> Iterator[int | Out]:
        yield value
        yield Out("x" * 1_000 if value == 1 else value, to=small)

    produce(brokers, source, range(3))
    with running(app, brokers) as member:
        wait_for(lambda: len(read_values(brokers, dlq)) == 1 and len(read_values(brokers, small)) == 2, "the outputs")
    assert member.error is None
    assert {*read_values(brokers, out)} == {b"0", b"1", b"2"}
    assert {*read_values(brokers, small)} == {b"0", b"2"}
    assert read_values(brokers, dlq) == [b"1"]
