"""Time: records that are to come later, time limits, and times that producers set."""

import asyncio
from datetime import UTC, datetime, timedelta

from conformance.drivers import Driver, counts
from conformance.scenarios.declaring import header, scenario
from kafka_helpers import of_kind
from penstock import App, Later, Record, Retry
from penstock.core.reports import events


@scenario
def later_comes_again_before_the_next_record_and_is_no_attempt(driver: Driver) -> None:
    source, app, seen = driver.topic(), App(driver.group()), driver.notes()

    @app.consume(source, retry=Retry(attempts=1))
    def handle(value: int, record: Record) -> None:
        seen.add((value, record.attempt))
        if value == 1 and len(seen.read()) < 4:
            raise Later("200ms", reason="not yet")

    stage = driver.stage(app)
    stage.produce(source, 0, 1, 2)
    reported = stage.catch_up()
    assert seen.read() == [(0, 1), (1, 1), (1, 1), (1, 1), (2, 1)]
    assert counts(reported) == (3, 0, 0, 0)
    assert [(e.offset, e.reason, e.to) for e in of_kind(reported, events.Delayed)] == [(1, "not yet", None)] * 2
    assert not of_kind(reported, events.Retried)
    assert stage.committed(source) == {0: 3}


@scenario
def later_waits_in_a_retry_topic_and_blocks_no_other_record(driver: Driver) -> None:
    source, app, seen = driver.topic(), App(driver.group()), driver.notes()

    @app.consume(source, retry=Retry(attempts=1), retry_topics=["1s"])
    def handle(value: int, record: Record) -> None:
        seen.add((value, record.attempt, record.topic == source))
        if value == 1 and record.topic == source:
            raise Later("2500ms")

    stage = driver.stage(app)
    stage.produce(source, 1, 2)
    stage.run_until(lambda: len(seen.read()) == 3)
    assert seen.read() == [(1, 1, True), (2, 1, True), (1, 1, False)]
    headers = [dict(record.headers) for record in stage.records(f"{source}.retry.1s")]
    assert 1 <= len(headers) <= 2, "it is postponed again without a call, unless it came back late"
    assert {each["penstock-retry-attempt"] for each in headers} == {b"1"}
    assert len({each["penstock-retry-until"] for each in headers}) == 1, "the time stays the same"


@scenario
def an_async_handler_that_takes_too_long_is_cancelled(driver: Driver) -> None:
    source, dlq, app, cancelled = driver.topic(), driver.topic(), App(driver.group()), driver.notes()

    @app.consume(source, timeout="300ms", dead_letter=dlq, retry=Retry(attempts=2, first="10ms"))
    async def handle(value: int) -> None:
        try:
            if value == 1:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.add(value)
            raise

    stage = driver.stage(app)
    stage.produce(source, 0, 1, 2)
    assert counts(stage.catch_up()) == (3, 0, 1, 0)
    assert cancelled.read() == [1, 1]
    (letter,) = stage.records(dlq)
    assert (header(letter, "error-type"), header(letter, "attempts")) == ("TimeoutError", "2")
    assert "its timeout of 0.3 s: Penstock cancelled it" in header(letter, "error-message")
    assert "await asyncio.Event().wait()" in header(letter, "traceback")


@scenario
def records_wait_for_their_time_or_expire(driver: Driver) -> None:
    source, app, seen = driver.topic(), App(driver.group()), driver.notes()

    @app.consume(source, honor_times=True, order="key")
    def handle(value: int) -> None:
        seen.add(value)

    stage = driver.stage(app)
    far = datetime.now(UTC) + timedelta(days=36_500)
    past = datetime(2001, 1, 1, tzinfo=UTC)
    stage.produce_timed(source, 1, expires=past)
    stage.produce_timed(source, 2, expires=far)
    stage.produce_timed(source, 3, not_before=past)
    stage.produce_timed(source, 4, not_before="2s", key=b"k")
    stage.produce(source, 5)
    reported = stage.catch_up()
    found = seen.read()
    assert sorted(found) == [2, 3, 4, 5]
    assert [event.offset for event in of_kind(reported, events.Expired)] == [0]
    # On a slow machine the app starts when the time of record 4 has come, and then nothing waits.
    delayed = {event.offset for event in of_kind(reported, events.Delayed)}
    if delayed or driver.sets_the_clock:
        assert (delayed, found[-1]) == ({3}, 4)
    assert stage.committed(source) == {0: 5}
