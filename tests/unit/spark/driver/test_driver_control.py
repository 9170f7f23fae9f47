"""What commands change of a handler on Spark reaches its tasks as the values of its options."""

from dataclasses import replace
from typing import Any

import pytest

from penstock import App
from penstock.app.runs.live_command import LiveCommand
from penstock.spark.driver.driver_control import DriverControl, SparkControl


@pytest.mark.parametrize("changes", [{"rate": "none"}, {"rate": None}, {"concurrency": 7}, {"concurrency": "auto"}])
def test_tasks_can_take_over_what_a_command_sets(changes: dict[str, Any]) -> None:
    app = App("shop")

    @app.consume("orders", order="none", concurrency=4)
    def ship(value: bytes) -> None: ...

    control, driver = SparkControl(app, lambda _: None), DriverControl(app.handlers[0], {})
    control.handlers = [driver]
    control.command(LiveCommand(action="set", changes=changes, by="ann", via="penstock set"))
    assert replace(app.handlers[0], **driver.changes) == driver.handler
