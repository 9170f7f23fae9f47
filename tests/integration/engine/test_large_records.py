"""Dead letters and outputs that are larger than their topic takes, on a real broker."""

import random

import pytest

from kafka_helpers import WAIT_SECONDS, MakeTopic, catch_up, committed, lag, of_kind, produce, read_records, read_values
from penstock import App, Record, Reject, Retry
from penstock.core.reports import events
from penstock.errors import ServerError
from penstock.kafka import Cluster, make_producer

# The broker checks the size after compression, so nothing is compressed here.
PLAIN = {"compression.type": "none"}
COORDINATES = ["penstock-dlq-topic", "penstock-dlq-partition", "penstock-dlq-offset"]


def names(record: Record) -> list[str]:
    return [name for name, _ in record.headers]


def test_a_dead_letter_that_is_too_large_is_written_with_fewer_headers_and_affects_no_other(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, dlq = make_topic(), make_topic(**{"max.message.bytes": "700"})
    app = App(group)

    @app.consume(source, dead_letter=dlq, settings=PLAIN)
    def handle(value: bytes) -> None:
        raise Reject("x" * 1_000 if value == b"2" else "no")

    produce(brokers, source, range(5))
    seen = catch_up(app, brokers)
    letters = {letter.value: names(letter) for letter in read_records(brokers, dlq)}
    assert letters.keys() == {b"0", b"1", b"2", b"3", b"4"}
    assert letters.pop(b"2") == COORDINATES
    assert {len(kept) for kept in letters.values()} == {10}, "the others of its batch have all headers"
    assert len(of_kind(seen, events.DeadLettered)) == 5
    assert committed(cluster, group, source) == {0: 5}


def test_a_dead_letter_that_is_always_too_large_stops_the_app_and_the_commit_point_stays(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, dlq = make_topic(), make_topic(**{"max.message.bytes": "700"})
    app = App(group)

    @app.consume(source, dead_letter=dlq, settings=PLAIN)
    def handle(value: bytes) -> None:
        if len(value) > 100:
            raise Reject("no")

    produce(brokers, source, [b"a", b"x" * 680, b"b"])
    with pytest.raises(ServerError, match=rf"writing the result of {source}\[0\]@1 to topic {dlq}"):
        catch_up(app, brokers)
    assert committed(cluster, group, source) == {0: 1}
    assert read_values(brokers, dlq) == []


def test_a_record_that_the_broker_accepted_is_also_accepted_as_a_dead_letter(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    """The client's own default for the largest record is below the broker's."""
    source, dlq = make_topic(), make_topic()
    large = random.Random(1).randbytes(1_020_000)
    producer = make_producer(brokers, settings={"message.max.bytes": 2_000_000, **PLAIN})
    producer.produce(source, large)
    assert producer.flush(WAIT_SECONDS) == 0
    app = App(group)

    @app.consume(source, dead_letter=dlq)
    def handle(value: bytes) -> None:
        raise Reject("no")

    catch_up(app, brokers)
    (letter,) = read_records(brokers, dlq)
    assert letter.value == large
    assert len(names(letter)) == 10
    assert lag(cluster, group, source) == 0


def test_an_output_that_is_too_large_affects_no_other(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, out, dlq = make_topic(), make_topic(**{"max.message.bytes": "2000"}), make_topic()
    app = App(group)

    @app.consume(source, to=out, dead_letter=dlq, settings={**PLAIN, "linger.ms": 200})
    def handle(value: int) -> bytes:
        return b"x" * (5_000 if value == 7 else 5)

    produce(brokers, source, range(20))
    catch_up(app, brokers)
    assert len(read_values(brokers, out)) == 19
    assert read_values(brokers, dlq) == [b"7"]
    assert lag(cluster, group, source) == 0


def test_a_record_that_the_retry_topic_does_not_take_is_dead_lettered_with_its_own_error(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, dlq = make_topic(), make_topic()
    cluster.create_topics([f"{source}.retry.1s"], partitions=1, config={"max.message.bytes": "700"})
    app = App(group)

    @app.consume(
        source, dead_letter=dlq, retry=Retry(first="1s", jitter=0), retry_topics=["1s"], settings=PLAIN, order="none"
    )
    def handle(value: bytes) -> None:
        if len(value) > 100:
            raise OSError("away")

    produce(brokers, source, [b"a", b"x" * 680, b"b"])
    catch_up(app, brokers)
    (letter,) = read_records(brokers, dlq)
    headers = dict(letter.headers)
    assert headers["penstock-dlq-error-type"] == b"OSError"
    assert (headers["penstock-dlq-error-message"] or b"").startswith(f"away (topic {source}.retry.1s refused".encode())
    assert headers["penstock-dlq-attempts"] == b"1"
    assert lag(cluster, group, source) == 0
