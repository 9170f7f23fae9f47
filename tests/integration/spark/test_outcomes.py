"""Outcomes of records on Spark, on a real broker. Handlers run in other processes, so they report by their outputs."""

from pathlib import Path

import pytest
from confluent_kafka import Producer

from kafka_helpers import WAIT_SECONDS, CatchUp, MakeTopic, committed, lag, of_kind, produce, read_records, read_values
from penstock import NO_RETRY, App, Record, Reject, Replay, Retry, Skip
from penstock.core.reports import events
from penstock.errors import ConfigError, HandlerError
from penstock.kafka import Cluster
from penstock.lifecycle import plan_replay


def totals(seen: list[events.Event]) -> tuple[int, int, int, int]:
    (stopped,) = of_kind(seen, events.Stopped)
    return stopped.read, stopped.written, stopped.dead_lettered, stopped.skipped


def test_outputs_dead_letters_and_skips_all_count_and_the_group_reaches_the_end(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source, out, dlq = make_topic(3), f"{group}.out", f"{group}.dlq"
    app = App(group)

    @app.consume(source, to=out, dead_letter=dlq, retry=Retry(attempts=2, first="1ms"))
    def handle(order: dict[str, int], record: Record) -> dict[str, int]:
        match order["id"] % 10:
            case 1:
                raise Skip("odd one")
            case 2:
                raise Reject("no stock")
            case 3 if record.attempt == 1:
                raise OSError("away")
        return {"id": order["id"], "partition": record.partition}

    for partition in range(3):
        produce(brokers, source, [f'{{"id":{n}}}' for n in range(100)] + ["{", None], partition=partition, key=b"k")

    seen = catch_up(app)
    assert totals(seen) == (306, 240, 36, 30)
    (started,) = of_kind(seen, events.Started)
    assert (started.engine, started.handler, started.topics, started.lag) == ("spark", "handle", (source,), 306)
    assert [event.topic for event in of_kind(seen, events.TopicCreated)] == [out, dlq]
    assert sum(batch.read for batch in of_kind(seen, events.BatchFinished)) == 306
    assert {event.offset for event in of_kind(seen, events.Committed)} == {102}
    assert committed(cluster, group, source) == {0: 102, 1: 102, 2: 102}

    outputs = read_records(brokers, out)
    assert sorted(record.value or b"" for record in outputs) == sorted(
        f'{{"id":{n},"partition":{partition}}}'.encode()
        for partition in range(3)
        for n in range(100)
        if n % 10 not in (1, 2)
    )
    assert {record.key for record in outputs} == {b"k"}
    letters = read_records(brokers, dlq)
    by_reason = [(dict(letter.headers)["penstock-dlq-error-type"], letter.value) for letter in letters]
    undecodable = [value for reason, value in by_reason if reason == b"Undecodable"]
    assert sorted(undecodable, key=repr) == [None, None, None, b"{", b"{", b"{"]
    assert [reason for reason, _ in by_reason].count(b"Reject") == 30


def test_a_handler_that_calls_its_app_gets_an_error_on_spark(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic()
    app = App(group)

    @app.consume(source, retry=NO_RETRY)
    def handle(value: bytes) -> None:
        app.progress()  # the app is pickled with the handler, but the engine is not

    produce(brokers, source, [1])
    with pytest.raises(HandlerError, match=r"The Spark engine does not answer app\.progress"):
        catch_up(app)


def test_a_dead_letter_keeps_key_value_and_headers(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source, dlq = make_topic(), f"{group}.dlq"
    app = App(group)

    @app.consume(source, dead_letter=dlq)
    def handle(record: Record) -> None:
        raise Reject(f"{record.headers} at {record.timestamp_ms}")

    headers: list[tuple[str, str | bytes | None]] = [("trace", b"1"), ("trace", b"\xff"), ("empty", None)]
    producer = Producer({"bootstrap.servers": brokers})
    producer.produce(source, b"\x00\xff", key=b"\x01", headers=headers, timestamp=1_700_000_000_123)
    producer.produce(source, None, key=None)
    producer.flush(WAIT_SECONDS)

    assert totals(catch_up(app)) == (2, 0, 2, 0)
    full, bare = read_records(brokers, dlq)
    assert (full.key, full.value, list(full.headers[:3])) == (b"\x01", b"\x00\xff", headers)
    told = dict(full.headers)
    assert told["penstock-dlq-error-message"] == f"{tuple(headers)} at 1700000000123".encode()
    assert told["penstock-dlq-timestamp"] == b"1700000000123"
    assert told["penstock-dlq-group"] == group.encode()
    assert (bare.key, bare.value) == (None, None)


def test_a_second_run_repeats_nothing_and_takes_what_is_new(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source, out = make_topic(2), f"{group}.out"
    app = App(group)

    @app.consume(source, to=out)
    def handle(value: str) -> str:
        return value

    produce(brokers, source, range(50))
    assert totals(catch_up(app)) == (50, 50, 0, 0)
    assert totals(catch_up(app)) == (0, 0, 0, 0)
    produce(brokers, source, range(50, 60), partition=1)
    assert totals(catch_up(app)) == (10, 10, 0, 0)
    assert sorted(int(value or b"") for value in read_values(brokers, out)) == list(range(60))


def test_an_async_handler_keeps_the_order_of_its_partition(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source, out = make_topic(2), f"{group}.out"
    app = App(group)

    @app.consume(source, to=out)
    async def handle(value: str) -> str:
        return value.upper()

    for partition in range(2):
        produce(brokers, source, [f"p{partition}-{n}" for n in range(200)], partition=partition, key=b"one key")
    catch_up(app)
    written = [(record.value or b"").decode() for record in read_records(brokers, out)]
    for partition in range(2):
        mine = [value for value in written if value.startswith(f"P{partition}")]
        assert mine == [f"P{partition}-{n}" for n in range(200)]


def test_two_handlers_run_side_by_side_in_many_batches(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    left, right = make_topic(2), make_topic()
    app = App(group)

    @app.consume(left, to=f"{group}.out", max_micro_batch=200)
    def first(value: bytes) -> bytes:
        return value

    @app.consume(right, max_micro_batch=200)
    async def second(value: int) -> None: ...

    for partition in range(2):
        produce(brokers, left, range(500), partition=partition)
    produce(brokers, right, range(500))
    seen = catch_up(app)
    assert {(stopped.handler, stopped.read, stopped.written) for stopped in of_kind(seen, events.Stopped)} == {
        ("first", 1000, 1000),
        ("second", 500, 0),
    }
    batches = of_kind(seen, events.BatchFinished)
    assert len(batches) >= 5 + 3
    assert max(batch.read for batch in batches) <= 200
    assert lag(cluster, group, left) == lag(cluster, group, right) == 0


def test_without_a_dead_letter_topic_the_app_stops_and_nothing_past_the_record_is_committed(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic()

    def app_that_fails_on(bad: int) -> App:
        app = App(group)

        @app.consume(source, retry=Retry(attempts=1))
        def handle(value: int) -> None:
            if value == bad:
                raise ValueError("no good\nat all")

        return app

    produce(brokers, source, range(5))
    catch_up(app_that_fails_on(-1))
    produce(brokers, source, range(5, 10))
    with pytest.raises(HandlerError) as caught:
        catch_up(app_that_fails_on(7))
    assert caught.value.problem.startswith(f"Handler handle failed on {source}[0]@7, attempt 1: ValueError: no good")
    assert "dead_letter=" in caught.value.hint
    assert committed(cluster, group, source) == {0: 7}
    assert totals(catch_up(app_that_fails_on(-1))) == (3, 0, 0, 0)


def test_an_output_that_is_too_large_is_one_clear_error(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic()
    app = App(group)

    @app.consume(source, to=f"{group}.out")
    def handle(value: int) -> bytes:
        import random  # noqa: PLC0415 - in the worker

        return random.Random(value).randbytes(2_000_000)

    produce(brokers, source, [1])
    with pytest.raises(HandlerError, match=rf"failed on {source}\[0\]@0, attempt 1: OutputRefused"):
        catch_up(app)
    assert committed(cluster, group, source) == {}


def test_a_handler_that_cannot_travel_is_refused_before_anything_runs(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp, tmp_path: Path
) -> None:
    app = App(group)
    with (tmp_path / "log").open("w") as file:

        @app.consume(make_topic())
        def handle(value: str) -> None:
            file.write(value)

        with pytest.raises(ConfigError, match="Handler handle cannot be sent to Spark's Python workers"):
            catch_up(app)


def test_a_replay_of_a_range_writes_to_the_topic_that_is_named_and_nothing_else(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source, out, again = make_topic(2), f"{group}.out", f"{group}.again"
    app = App(group)

    @app.consume(source, to=out)
    def handle(value: int) -> int:
        return value

    produce(brokers, source, range(20))
    options = Replay(from_={(source, 0): 5}, to={(source, 0): 9}, to_topic=again)
    replay = plan_replay(app, cluster, options)
    replay.apply(app)
    catch_up(app)
    assert replay.finish() == 0
    assert {*read_values(brokers, again)} == {b"5", b"6", b"7", b"8"}
    assert out not in cluster.topics()
    assert committed(cluster, group, source) == {}
