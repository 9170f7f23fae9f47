"""Offsets that are reset while the app is stopped: it continues from the new offsets."""

from conformance.drivers import Driver
from conformance.scenarios.declaring import scenario
from penstock import App


@scenario
def a_reset_backwards_repeats_and_one_forwards_skips(driver: Driver) -> None:
    source, app, seen = driver.topic(), App(driver.group()), driver.notes()

    @app.consume(source)
    def handle(value: int) -> None:
        seen.add(value)

    stage = driver.stage(app)
    stage.produce(source, *range(10))
    stage.catch_up()
    stage.reset(source, 7)
    stage.catch_up()
    assert seen.read() == [*range(10), 7, 8, 9]
    stage.produce(source, *range(10, 15))
    stage.reset(source, 13)
    stage.catch_up()
    assert seen.read()[13:] == [13, 14]
    assert stage.committed(source) == {0: 15}
