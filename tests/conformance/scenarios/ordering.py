"""Which records run in order, and which do not wait for each other."""

import asyncio

from conformance.drivers import Driver
from conformance.handler_reports import Notes
from conformance.scenarios.declaring import scenario
from penstock import App, Record, Retry
from penstock.core.records.partitioner import partition_for

# How often a record checks for the others before it stops waiting.
_LOOKS = 5_000


def of_key(notes: Notes, key: bytes) -> list[int]:
    return [value for noted, value in notes.read() if noted == key]


@scenario
def each_key_keeps_its_order_while_many_run_at_once(driver: Driver) -> None:
    source, out, app = driver.topic(2), driver.topic(), App(driver.group())

    @app.consume(source, to=out, order="key", concurrency=8)
    async def handle(value: int) -> int:
        await asyncio.sleep(0.001 * (value % 3))
        return value

    stage = driver.stage(app)
    for number in range(60):
        stage.produce(source, number, key=b"key-%d" % (number % 6))
    stage.catch_up()
    written = [(record.key, int(record.value or b"")) for record in stage.records(out)]
    for key in {key for key, _ in written}:
        values = [value for noted, value in written if noted == key]
        assert values == sorted(values)
    assert sorted(value for _, value in written) == list(range(60))


@scenario
def a_hot_key_does_not_hold_up_the_other_keys(driver: Driver) -> None:
    source, app, seen = driver.topic(), App(driver.group()), driver.notes()

    @app.consume(source, order="key", concurrency=4)
    async def handle(value: int, record: Record) -> None:
        if value == 0:
            for _ in range(_LOOKS):
                if len(seen) == 10:
                    break
                await asyncio.sleep(0.02)
        seen.add((record.key, value))

    stage = driver.stage(app)
    for number in range(40):  # most records have one key, and its first record waits for all other keys
        stage.produce(source, number, key=b"other-%d" % number if number % 4 == 3 else b"hot")
    stage.catch_up()
    noted = seen.read()
    assert sorted(value for _, value in noted[:10]) == list(range(3, 40, 4)), noted
    assert [value for _, value in noted[10:]] == [number for number in range(40) if number % 4 != 3]


@scenario
def a_retry_holds_its_own_key_and_no_other(driver: Driver) -> None:
    source, app, seen = driver.topic(), App(driver.group()), driver.notes()

    @app.consume(source, order="key", retry=Retry(attempts=2, first="3s", jitter=0))
    def handle(value: int, record: Record) -> None:
        seen.add((record.key, value))
        if value == 0 and record.attempt == 1:
            raise OSError("away")

    stage = driver.stage(app)
    for number in range(9):
        stage.produce(source, number, key=b"abc"[number % 3 : number % 3 + 1])
    stage.catch_up()
    assert of_key(seen, b"a") == [0, 0, 3, 6]
    assert of_key(seen, b"b") == [1, 4, 7]
    assert of_key(seen, b"c") == [2, 5, 8]
    assert [value for _, value in seen.read()[-3:]] == [0, 3, 6], "all others were handled before its second attempt"


@scenario
def a_key_meets_the_partition_that_its_hash_says(driver: Driver) -> None:
    source, app, found = driver.topic(5), App(driver.group()), driver.notes()

    @app.consume(source)
    def handle(record: Record) -> None:
        found.add((record.key, record.partition))

    stage = driver.stage(app)
    keys = [b"key-%d" % number for number in range(30)]
    for key in keys:
        stage.produce(source, 1, key=key)
    stage.catch_up()
    assert dict(found.read()) == {key: partition_for(key, 5) for key in keys}
