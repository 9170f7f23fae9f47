"""What must hold on the testing kit and on a real broker alike. Each is played on both."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from bed import of_kind
from conformance.drivers import Driver, counts
from penstock import App, Record, Reject, Retry, Skip
from penstock.core import events
from penstock.errors import HandlerError
from penstock.testing.partitioner import partition_for

Scenario = Callable[[Driver], None]

SCENARIOS: list[Scenario] = []


def scenario(play: Scenario) -> Scenario:
    SCENARIOS.append(play)
    return play


@dataclass
class Order:
    id: int


def header(record: Record, name: str) -> str:
    return (dict(record.headers)[f"penstock-dlq-{name}"] or b"").decode()


@scenario
def outputs_skips_and_rejects_all_count(driver: Driver) -> None:
    source, out, dlq, app = driver.topic(2), driver.topic(), driver.topic(), App(driver.group())

    @app.consume(source, to=out, dead_letter=dlq)
    def handle(order: Order, record: Record) -> dict[str, int] | None:
        if order.id % 4 == 1:
            raise Skip("odd one")
        if order.id % 4 == 2:
            raise Reject("no stock")
        return None if order.id % 4 == 3 else {"id": order.id}

    stage = driver.stage(app)
    for partition in range(2):
        stage.produce(source, *(f'{{"id":{n}}}' for n in range(8)), key=b"k%d" % partition, partition=partition)
    reported = stage.catch_up()
    assert counts(reported) == (16, 4, 4, 4)
    assert len(of_kind(reported, events.Finished)) == 8
    assert {event.reason for event in of_kind(reported, events.Skipped)} == {"odd one"}
    assert Counter((r.key, r.value) for r in stage.records(out)) == {
        (b"k0", b'{"id":0}'): 1,
        (b"k0", b'{"id":4}'): 1,
        (b"k1", b'{"id":0}'): 1,
        (b"k1", b'{"id":4}'): 1,
    }
    letters = stage.records(dlq)
    assert {(header(r, "error-type"), header(r, "error-message"), header(r, "attempts")) for r in letters} == {
        ("Reject", "no stock", "1")
    }
    assert sorted((header(r, "partition"), header(r, "offset"), r.value) for r in letters) == [
        ("0", "2", b'{"id":2}'),
        ("0", "6", b'{"id":6}'),
        ("1", "2", b'{"id":2}'),
        ("1", "6", b'{"id":6}'),
    ]
    assert stage.committed(source) == {0: 8, 1: 8}


@scenario
def what_cannot_be_decoded_is_a_dead_letter_with_its_raw_bytes(driver: Driver) -> None:
    source, dlq, app, seen = driver.topic(), driver.topic(), App(driver.group()), []

    @app.consume(source, dead_letter=dlq)
    async def handle(order: Order) -> None:
        seen.append(order.id)

    stage = driver.stage(app)
    stage.produce(source, '{"id":1}', "{", None, b"\xff", '{"id":"x"}', '{"id":2}')
    stage.catch_up()
    assert seen == [1, 2]
    assert [record.value for record in stage.records(dlq)] == [b"{", None, b"\xff", b'{"id":"x"}']
    assert {header(record, "error-type") for record in stage.records(dlq)} == {"Undecodable"}
    assert stage.committed(source) == {0: 6}


@scenario
def a_retry_comes_before_the_next_record_and_then_succeeds(driver: Driver) -> None:
    source, app, attempts = driver.topic(), App(driver.group()), []

    @app.consume(source, retry=Retry(attempts=3, first="20ms", jitter=0))
    def handle(value: int, record: Record) -> None:
        attempts.append((value, record.attempt))
        if value == 1 and record.attempt < 3:
            raise OSError("away")

    stage = driver.stage(app)
    stage.produce(source, 0, 1, 2)
    reported = stage.catch_up()
    assert attempts == [(0, 1), (1, 1), (1, 2), (1, 3), (2, 1)]
    assert [(e.attempt, e.seconds, e.reason) for e in of_kind(reported, events.Retried)] == [
        (1, 0.02, "OSError: away"),
        (2, 0.04, "OSError: away"),
    ]
    assert [(e.offset, e.attempt) for e in of_kind(reported, events.Finished)] == [(0, 1), (1, 3), (2, 1)]


@scenario
def after_its_last_attempt_a_record_is_a_dead_letter(driver: Driver) -> None:
    source, dlq, app = driver.topic(), driver.topic(), App(driver.group())

    @app.consume(source, dead_letter=dlq, order="none", retry=Retry(attempts=3, first="10ms"))
    def handle(value: int) -> None:
        if value == 1:
            raise OSError("away")

    stage = driver.stage(app)
    stage.produce(source, 0, 1, 2)
    assert counts(stage.catch_up()) == (3, 0, 1, 0)
    (letter,) = stage.records(dlq)
    assert (letter.value, header(letter, "attempts"), header(letter, "error-type")) == (b"1", "3", "OSError")
    assert stage.committed(source) == {0: 3}


@scenario
def without_a_dead_letter_topic_the_app_stops_at_the_record_each_time(driver: Driver) -> None:
    source, app, seen = driver.topic(), App(driver.group()), []

    @app.consume(source, retry=Retry(attempts=2, first="10ms"))
    def handle(value: int) -> None:
        seen.append(value)
        if value == 2:
            raise ValueError("two")

    stage = driver.stage(app)
    stage.produce(source, *range(5))
    for _ in range(2):
        with pytest.raises(HandlerError, match=rf"handle failed on {source}\[0\]@2, attempt 2: ValueError: two\."):
            stage.catch_up()
        assert stage.committed(source) == {0: 2}
    assert seen == [0, 1, 2, 2, 2, 2]


@scenario
def a_record_is_finished_when_it_is_acknowledged_and_not_before(driver: Driver) -> None:
    source, app, seen = driver.topic(), App(driver.group()), []

    @app.consume(source, commit="manual", drain_timeout="200ms")
    def handle(record: Record) -> None:
        seen.append(record.offset)
        if record.offset != 1 or len(seen) > 3:
            record.ack()

    stage = driver.stage(app)
    stage.produce(source, 0, 1, 2)
    stage.run_until(lambda: len(seen) == 3)
    assert stage.committed(source) == {0: 1}
    stage.run_until(lambda: len(seen) == 4)
    assert seen == [0, 1, 2, 1]
    assert stage.committed(source) == {0: 3}


@scenario
def the_poison_of_a_batch_fails_alone(driver: Driver) -> None:
    source, out, dlq, app = driver.topic(), driver.topic(), driver.topic(), App(driver.group())

    @app.consume(source, batch=5, linger="100ms", to=out, dead_letter=dlq, retry=Retry(attempts=1))
    def handle(orders: list[Order]) -> list[int | Exception]:
        if any(order.id == 3 for order in orders):
            raise ValueError("three")
        return [Reject("six") if order.id == 6 else order.id for order in orders]

    stage = driver.stage(app)
    stage.produce(source, *(f'{{"id":{n}}}' for n in range(8)), "{")
    stage.catch_up()
    assert sorted(record.value or b"" for record in stage.records(out)) == [b"0", b"1", b"2", b"4", b"5", b"7"]
    reasons = {(r.value, header(r, "error-type")) for r in stage.records(dlq)}
    assert reasons == {(b'{"id":3}', "ValueError"), (b'{"id":6}', "Reject"), (b"{", "Undecodable")}
    assert stage.committed(source) == {0: 9}


@scenario
def a_restart_repeats_nothing(driver: Driver) -> None:
    source, app, seen = driver.topic(3), App(driver.group()), []

    @app.consume(source, order="none")
    async def handle(value: int) -> None:
        await asyncio.sleep(0)
        seen.append(value)

    stage = driver.stage(app)
    stage.produce(source, *range(20), partition=0)
    stage.produce(source, *range(20, 25), partition=1)
    stage.catch_up()
    stage.catch_up()
    stage.produce(source, *range(25, 30), partition=1)
    stage.catch_up()
    assert sorted(seen) == list(range(30))
    assert {partition: offset for partition, offset in stage.committed(source).items() if offset} == {0: 20, 1: 10}


@scenario
def a_retry_holds_its_own_key_and_no_other(driver: Driver) -> None:
    source, app, log = driver.topic(), App(driver.group()), defaultdict(list)
    everything: list[int] = []

    @app.consume(source, order="key", retry=Retry(attempts=2, first="500ms", jitter=0))
    def handle(value: int, record: Record) -> None:
        log[record.key].append(value)
        everything.append(value)
        if value == 0 and record.attempt == 1:
            raise OSError("away")

    stage = driver.stage(app)
    for number in range(9):
        stage.produce(source, number, key=b"abc"[number % 3 : number % 3 + 1])
    stage.catch_up()
    assert log[b"a"] == [0, 0, 3, 6]
    assert log[b"b"] == [1, 4, 7]
    assert log[b"c"] == [2, 5, 8]
    assert everything[-3:] == [0, 3, 6], "all others were through before its second attempt"


@scenario
def what_is_finished_above_a_waiting_record_is_not_repeated(driver: Driver) -> None:
    source, app, seen = driver.topic(), App(driver.group()), []

    @app.consume(source, order="key", retry=Retry(attempts=9, first="1h", limit="1h"))
    def handle(value: int) -> None:
        seen.append(value)
        if value == 1 and seen.count(1) == 1:
            raise OSError("away")

    stage = driver.stage(app)
    for number in range(6):
        stage.produce(source, number, key=b"%d" % number)
    stage.run_until(lambda: len(seen) == 6)
    assert stage.committed(source) == {0: 1}
    stage.catch_up()
    assert seen[6:] == [1]
    assert stage.committed(source) == {0: 6}


@scenario
def a_key_meets_the_partition_that_its_hash_says(driver: Driver) -> None:
    source, app, found = driver.topic(5), App(driver.group()), {}

    @app.consume(source)
    def handle(record: Record) -> None:
        found[record.key] = record.partition

    stage = driver.stage(app)
    keys = [b"key-%d" % number for number in range(30)]
    for key in keys:
        stage.produce(source, 1, key=key)
    stage.catch_up()
    assert found == {key: partition_for(key, 5) for key in keys}


@scenario
def one_handler_feeds_another(driver: Driver) -> None:
    source, middle, out, app = driver.topic(2), driver.topic(), driver.topic(), App(driver.group())
    labelled: list[str] = []

    @app.consume(source, to=middle)
    def ship(value: int) -> str:
        return f"shipment {value}"

    @app.consume(middle, to=out, commit="record")
    async def label(value: str) -> str:
        labelled.append(value)
        return f"label of {value}"

    stage = driver.stage(app)
    stage.produce(source, *range(4), key=b"k")
    stage.run_until(lambda: len(labelled) == 4)
    assert [record.value for record in stage.records(out)] == [b"label of shipment %d" % n for n in range(4)]
    assert stage.committed(middle) == {0: 4}
