"""Where an app continues after a restart, and which new topics and partitions it finds."""

import asyncio

from conformance.drivers import Driver
from conformance.scenarios.declaring import scenario
from penstock import App, Record, Retry


@scenario
def a_restart_repeats_nothing(driver: Driver) -> None:
    source, app, seen = driver.topic(3), App(driver.group()), driver.notes()

    @app.consume(source, order="none")
    async def handle(value: int) -> None:
        await asyncio.sleep(0)
        seen.add(value)

    stage = driver.stage(app)
    stage.produce(source, *range(20), partition=0)
    stage.produce(source, *range(20, 25), partition=1)
    stage.catch_up()
    stage.catch_up()
    stage.produce(source, *range(25, 30), partition=1)
    stage.catch_up()
    assert sorted(seen.read()) == list(range(30))
    assert {partition: offset for partition, offset in stage.committed(source).items() if offset} == {0: 20, 1: 10}


@scenario
def partitions_that_were_added_are_consumed_from_their_start(driver: Driver) -> None:
    source, app, seen = driver.topic(), App(driver.group()), driver.notes()

    @app.consume(source)
    def handle(value: int, record: Record) -> None:
        seen.add((record.partition, value))

    stage = driver.stage(app)
    stage.produce(source, *range(5), partition=0)
    stage.catch_up()
    driver.add_partitions(source, 3)
    stage.produce(source, *range(5, 10), partition=2)
    stage.produce(source, *range(10, 12), partition=0)
    stage.catch_up()
    assert sorted(seen.read()) == [(0, n) for n in (0, 1, 2, 3, 4, 10, 11)] + [(2, n) for n in range(5, 10)]
    assert {partition: offset for partition, offset in stage.committed(source).items() if offset} == {0: 7, 2: 5}


@scenario
def what_is_finished_above_a_waiting_record_is_not_repeated(driver: Driver) -> None:
    source, app, seen = driver.topic(), App(driver.group()), driver.notes()

    @app.consume(source, order="key", retry=Retry(attempts=9, first="1h", limit="1h"))
    def handle(value: int) -> None:
        seen.add(value)
        if value == 1 and seen.read().count(1) == 1:
            raise OSError("away")

    stage = driver.stage(app)
    for number in range(6):
        stage.produce(source, number, key=b"%d" % number)
    stage.run_until(lambda: len(seen) == 6)
    assert stage.committed(source) == {0: 1}
    stage.catch_up()
    assert seen.read()[6:] == [1]
    assert stage.committed(source) == {0: 6}


@scenario
def a_record_is_finished_when_it_is_acknowledged_and_not_before(driver: Driver) -> None:
    source, app, seen = driver.topic(), App(driver.group()), driver.notes()

    @app.consume(source, commit="manual", drain_timeout="2s")
    def handle(record: Record) -> None:
        seen.add(record.offset)
        if record.offset != 1 or len(seen) > 3:
            record.ack()

    stage = driver.stage(app)
    stage.produce(source, 0, 1, 2)
    stage.run_until(lambda: len(seen) == 3)
    assert stage.committed(source) == {0: 1}
    stage.run_until(lambda: len(seen) == 4)
    assert seen.read() == [0, 1, 2, 1]
    assert stage.committed(source) == {0: 3}
