"""Outcomes of records on the local engine, on a real broker."""

from dataclasses import dataclass

import pytest

from kafka_helpers import WAIT_SECONDS, MakeTopic, catch_up, committed, lag, of_kind, produce, read_records, read_values
from penstock import App, Record, Reject, Retry, Skip
from penstock.core.reports import events
from penstock.errors import HandlerError, ServerError, TopicError
from penstock.kafka import Cluster


@dataclass
class Order:
    id: int


def ignore(value: bytes) -> None: ...


def test_outputs_dead_letters_and_skips_all_count_and_the_group_reaches_the_end(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, out, dlq = make_topic(3), f"{group}.out", f"{group}.dlq"
    app = App(group)

    @app.consume(source, to=out, dead_letter=dlq)
    def handle(order: Order, record: Record) -> dict[str, int]:
        if order.id % 10 == 1:
            raise Skip("odd one")
        if order.id % 10 == 2:
            raise Reject("no stock")
        return {"id": order.id, "partition": record.partition}

    for partition in range(3):
        produce(brokers, source, [f'{{"id":{n}}}' for n in range(100)] + ["{", None], partition=partition, key=b"k")

    seen = catch_up(app, brokers)
    (stopped,) = of_kind(seen, events.Stopped)
    assert (stopped.read, stopped.written, stopped.dead_lettered, stopped.skipped) == (306, 240, 36, 30)
    assert [event.topic for event in of_kind(seen, events.TopicCreated)] == [out, dlq]
    assert len(read_values(brokers, out)) == 240
    assert lag(cluster, group, source) == 0
    assert committed(cluster, group, source) == {0: 102, 1: 102, 2: 102}

    letters = read_records(brokers, dlq)
    assert len(letters) == 36
    rejected = next(r for r in letters if dict(r.headers)["penstock-dlq-error-type"] == b"Reject")
    headers = dict(rejected.headers)
    assert headers["penstock-dlq-topic"] == source.encode()
    assert headers["penstock-dlq-group"] == group.encode()
    assert headers["penstock-dlq-error-message"] == b"no stock"
    assert rejected.value == f'{{"id":{int(headers["penstock-dlq-offset"] or 0)}}}'.encode()
    undecodable = [r.value for r in letters if dict(r.headers)["penstock-dlq-error-type"] == b"Undecodable"]
    assert sorted(undecodable, key=repr) == [None, None, None, b"{", b"{", b"{"]


def test_a_second_run_repeats_nothing(brokers: str, group: str, make_topic: MakeTopic) -> None:
    source, seen = make_topic(2), []
    app = App(group)

    @app.consume(source)
    def handle(value: bytes) -> None:
        seen.append(value)

    produce(brokers, source, range(50))
    catch_up(app, brokers)
    catch_up(app, brokers)
    produce(brokers, source, range(50, 60), partition=1)
    catch_up(app, brokers)
    assert sorted(int(value) for value in seen) == list(range(60))


def test_an_async_handler_keeps_the_order_of_its_partition(brokers: str, group: str, make_topic: MakeTopic) -> None:
    source, out = make_topic(2), f"{group}.out"
    app = App(group)

    @app.consume(source, to=out)
    async def handle(value: str) -> str:
        return value.upper()

    for partition in range(2):
        produce(brokers, source, [f"p{partition}-{n}" for n in range(200)], partition=partition, key=b"one key")
    catch_up(app, brokers)
    written = [(record.value or b"").decode() for record in read_records(brokers, out)]
    for partition in range(2):
        mine = [value for value in written if value.startswith(f"P{partition}")]
        assert mine == [f"P{partition}-{n}" for n in range(200)]


def test_a_retry_is_attempted_again_and_then_succeeds(brokers: str, group: str, make_topic: MakeTopic) -> None:
    source, attempts = make_topic(), []
    app = App(group)

    @app.consume(source, retry=Retry(attempts=3, first="50ms", jitter=0))
    def handle(value: str, record: Record) -> None:
        attempts.append((value, record.attempt))
        if value == "1" and record.attempt < 3:
            raise OSError("away")

    produce(brokers, source, range(3))
    seen = catch_up(app, brokers)
    assert attempts == [("0", 1), ("1", 1), ("1", 2), ("1", 3), ("2", 1)]
    assert [(e.attempt, e.seconds, e.reason) for e in of_kind(seen, events.Retried)] == [
        (1, 0.05, "OSError: away"),
        (2, 0.1, "OSError: away"),
    ]


def test_without_a_dead_letter_topic_the_app_stops_and_nothing_past_the_record_is_committed(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source = make_topic()
    app = App(group)

    @app.consume(source, retry=Retry(attempts=1))
    def handle(value: int) -> None:
        if value == 5:
            raise ValueError("five")

    produce(brokers, source, range(10))
    with pytest.raises(HandlerError, match=rf"handle failed on {source}\[0\]@5, attempt 1: ValueError: five"):
        catch_up(app, brokers)
    assert committed(cluster, group, source) == {0: 5}


def test_a_dead_letter_that_cannot_be_written_moves_no_commit_point(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    # The topic takes only tiny records, so the broker refuses the dead letter.
    source, dlq = make_topic(), make_topic(**{"max.message.bytes": "100"})
    app = App(group)

    @app.consume(source, dead_letter=dlq)
    def handle(value: bytes) -> None:
        if value == b"3":
            raise Reject("no")

    produce(brokers, source, range(6))
    with pytest.raises(ServerError, match=f"to topic {dlq}: Broker: Message size too large"):
        catch_up(app, brokers)
    assert committed(cluster, group, source) == {0: 3}


def test_an_output_that_is_too_large_is_its_record_s_failure(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, out, dlq = make_topic(), make_topic(**{"max.message.bytes": "2000"}), make_topic()
    app = App(group)

    @app.consume(source, to=out, dead_letter=dlq, settings={"compression.type": "none"})
    def handle(value: int) -> bytes:
        return b"x" * (5_000 if value == 2 else 5)

    for number in range(4):
        produce(brokers, source, [number])
        catch_up(app, brokers)
    assert len(read_values(brokers, out)) == 3
    assert read_values(brokers, dlq) == [b"2"]
    assert lag(cluster, group, source) == 0


def test_transaction_markers_and_a_late_log_start_are_passed(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    from confluent_kafka import Producer, TopicPartition  # noqa: PLC0415
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415

    source, seen = make_topic(), []
    producer = Producer({"bootstrap.servers": brokers, "transactional.id": group})
    producer.init_transactions(30)
    for commits in (True, False, True):
        producer.begin_transaction()
        for _ in range(3):
            producer.produce(source, b"kept" if commits else b"dropped")
        producer.flush(WAIT_SECONDS)
        if commits:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    admin = AdminClient({"bootstrap.servers": brokers})
    for future in admin.delete_records([TopicPartition(source, 0, 1)]).values():
        future.result()

    app = App(group)

    @app.consume(source)
    def handle(value: bytes) -> None:
        seen.append(value)

    catch_up(app, brokers)
    assert seen == [b"kept"] * 5
    assert committed(cluster, group, source) == {0: 12}


def test_a_missing_source_is_named_with_its_nearest_neighbour(brokers: str, group: str, make_topic: MakeTopic) -> None:
    source = make_topic()
    app = App(group)
    app.consume(source[:-1])(ignore)
    with pytest.raises(TopicError, match=f"Topic '{source[:-1]}' does not exist") as caught:
        catch_up(app, brokers)
    assert caught.value.hint == f"Did you mean {source!r}?"


def test_a_missing_target_is_an_error_where_topics_are_not_to_be_created(
    brokers: str, group: str, make_topic: MakeTopic
) -> None:
    app = App(group, create_topics=False)
    app.consume(make_topic(), dead_letter=f"{group}.dlq")(ignore)
    with pytest.raises(TopicError, match="does not exist") as caught:
        catch_up(app, brokers)
    assert "create_topics=True" in caught.value.hint
