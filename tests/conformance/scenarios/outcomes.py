"""The outcomes of a record: outputs, dead letters, retries, undecodable values."""

from collections import Counter

import pytest

from conformance.drivers import Driver, counts
from conformance.scenarios.declaring import Order, header, scenario
from kafka_helpers import of_kind
from penstock import App, Record, Reject, Retry, Skip
from penstock.core.reports import events
from penstock.errors import HandlerError


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
    if driver.reports_records:
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
    source, dlq, app, seen = driver.topic(), driver.topic(), App(driver.group()), driver.notes()

    @app.consume(source, dead_letter=dlq)
    async def handle(order: Order) -> None:
        seen.add(order.id)

    stage = driver.stage(app)
    stage.produce(source, '{"id":1}', "{", None, b"\xff", '{"id":"x"}', '{"id":2}')
    stage.catch_up()
    assert seen.read() == [1, 2]
    assert [record.value for record in stage.records(dlq)] == [b"{", None, b"\xff", b'{"id":"x"}']
    assert {header(record, "error-type") for record in stage.records(dlq)} == {"Undecodable"}
    assert stage.committed(source) == {0: 6}


@scenario
def a_retry_comes_before_the_next_record_and_then_succeeds(driver: Driver) -> None:
    source, app, attempts = driver.topic(), App(driver.group()), driver.notes()

    @app.consume(source, retry=Retry(attempts=3, first="20ms", jitter=0))
    def handle(value: int, record: Record) -> None:
        attempts.add((value, record.attempt))
        if value == 1 and record.attempt < 3:
            raise OSError("away")

    stage = driver.stage(app)
    stage.produce(source, 0, 1, 2)
    reported = stage.catch_up()
    assert attempts.read() == [(0, 1), (1, 1), (1, 2), (1, 3), (2, 1)]
    if driver.reports_records:
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
    frame, line, last = header(letter, "traceback").splitlines()[-3:]
    assert (frame.rpartition(" ")[2], line, last) == ("handle", '    raise OSError("away")', "OSError: away")
    assert stage.committed(source) == {0: 3}


@scenario
def a_bug_of_the_handler_stops_the_app_and_leaves_good_records_alone(driver: Driver) -> None:
    source, dlq, app = driver.topic(), driver.topic(), App(driver.group())

    @app.consume(source, dead_letter=dlq)
    def handle(record: Record) -> None:
        if record.offset == 2:
            record.ack()

    stage = driver.stage(app)
    stage.produce(source, *range(5))
    with pytest.raises(
        HandlerError, match=rf"handle failed on {source}\[0\]@2, attempt 1: HandlerBug: .* commit="
    ) as bug:
        stage.catch_up()
    assert "in handle" in bug.value.traceback
    assert stage.records(dlq) == []


@scenario
def without_a_dead_letter_topic_the_app_stops_at_the_record_each_time(driver: Driver) -> None:
    source, app, seen = driver.topic(), App(driver.group()), driver.notes()

    @app.consume(source, retry=Retry(attempts=2, first="10ms"))
    def handle(value: int) -> None:
        seen.add(value)
        if value == 2:
            raise ValueError("two")

    stage = driver.stage(app)
    stage.produce(source, *range(5))
    for _ in range(2):
        with pytest.raises(HandlerError, match=rf"handle failed on {source}\[0\]@2, attempt 2: ValueError: two\."):
            stage.catch_up()
        assert stage.committed(source) == ({} if driver.commits_batches else {0: 2})
    assert seen.read() == ([0, 1, 2, 2, 0, 1, 2, 2] if driver.commits_batches else [0, 1, 2, 2, 2, 2])


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
def one_handler_feeds_another(driver: Driver) -> None:
    source, middle, out, app = driver.topic(2), driver.topic(), driver.topic(), App(driver.group())
    labelled = driver.notes()

    @app.consume(source, to=middle)
    def ship(value: int) -> str:
        return f"shipment {value}"

    @app.consume(middle, to=out, commit="record")
    async def label(value: str) -> str:
        labelled.add(value)
        return f"label of {value}"

    stage = driver.stage(app)
    stage.produce(source, *range(4), key=b"k")
    stage.run_until(lambda: len(labelled) == 4)
    assert [record.value for record in stage.records(out)] == [b"label of shipment %d" % n for n in range(4)]
    assert stage.committed(middle) == {0: 4}
