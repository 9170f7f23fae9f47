"""How large the next slices are: the limits of options, and of events of single records."""

from typing import Any

import pytest

from penstock import App
from penstock.core.progress.slices import PartitionSlices
from penstock.spark.driver.next_slices import next_slices


def sizes(options: dict[str, Any], *, per_record: bool = False) -> list[int]:
    app = App("shop")
    app.consume("orders", **options)(lambda value: None)
    partition = PartitionSlices(("orders", 0), epoch=1, position=0, end=2_000_000)
    found = next_slices(app.handlers[0], [partition], 0.0, running=0, slots=2, per_record=per_record)
    return [each.end - each.start for bundle in found for task in bundle.tasks for each in task]


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ({}, 1_000_000),
        ({"max_micro_batch": 300}, 300),
        # A crash may lose what was committed and not handled, and that is limited.
        ({"delivery": "at-most-once"}, 10_000),
        ({"delivery": "at-most-once", "max_in_flight": 50}, 50),
    ],
)
def test_a_slice_has_as_many_records_as_the_options_allow(options: dict[str, Any], size: int) -> None:
    assert sizes(options) == [size]


def test_with_events_of_single_records_slices_are_so_small_that_a_queue_of_events_takes_them() -> None:
    assert sizes({}, per_record=True) == [5_000]
    assert sizes({"max_micro_batch": 300}, per_record=True) == [300]


def test_with_scale_cpu_each_task_gets_the_slice_with_a_share_of_its_own() -> None:
    assert sizes({"scale": "cpu", "order": "key"}) == [1_000_000, 1_000_000]
