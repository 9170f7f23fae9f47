"""Fair turns with an offset map that has room for little: any order of ends, every record, and small maps."""

from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dispatch_helpers import make_dispatch
from penstock import Record
from penstock.core.failures.outcome import DONE
from penstock.core.scheduling import epoch_parts, lanes
from penstock.core.scheduling.fair_queue import Fairness
from penstock.core.scheduling.lanes import LaneRun, Order

TP = ("t", 0)
COUNT, RANGES, SPAN = 60, 4, 8
FAIRNESS = Fairness(lambda record: record.key[:1], lambda record: record.offset % 3)


@pytest.mark.parametrize("order", ["key", "none"])
@settings(max_examples=30)
@given(tenants=st.lists(st.sampled_from("aaaabc"), min_size=COUNT, max_size=COUNT), data=st.data())
def test_maps_stay_small_and_every_record_ends(order: Order, tenants: list[str], data: st.DataObject) -> None:
    with (
        patch.object(epoch_parts, "MAX_RANGES", RANGES),
        patch.object(epoch_parts, "BITMAP_SPAN", SPAN),
        patch.object(lanes, "BITMAP_SPAN", SPAN),
    ):
        dispatch = make_dispatch(order=order, concurrency=6, max_in_flight=COUNT, fairness=FAIRNESS)
        epoch = dispatch.assign(TP, 0)
        keys = [f"{tenant}{number // 2}".encode() for number, tenant in enumerate(tenants)]
        dispatch.deliver(TP, [Record(*TP, offset, key, b"") for offset, key in enumerate(keys)])
        out: list[LaneRun] = []
        ended: dict[bytes, list[int]] = {}
        for _ in range(COUNT):
            out += [run for bundle in dispatch.take(0.0, 1) for run in bundle]
            run = out.pop(data.draw(st.integers(0, len(out) - 1)))  # there is always one: no record waits for ever
            dispatch.release()
            dispatch.report([(run, [DONE], True)], 0.0)
            ended.setdefault(run.records[0].key, []).append(run.records[0].offset)
            point, ranges = epoch.tracker.commit_point, epoch.tracker.finished_ranges()
            assert point is not None
            assert len(ranges) <= RANGES or ranges[-1][1] <= point + SPAN
        assert epoch.tracker.commit_point == COUNT
        assert order == "none" or all(offsets == sorted(offsets) for offsets in ended.values())


@pytest.mark.parametrize("fairness", [None, FAIRNESS])
def test_a_record_that_is_put_back_into_a_lane_without_order_that_waits_for_room_begins_again(
    fairness: Fairness | None,
) -> None:
    with (
        patch.object(epoch_parts, "MAX_RANGES", RANGES),
        patch.object(epoch_parts, "BITMAP_SPAN", SPAN),
        patch.object(lanes, "BITMAP_SPAN", SPAN),
    ):
        dispatch = make_dispatch(order="none", concurrency=60, max_in_flight=COUNT, fairness=fairness)
        epoch = dispatch.assign(TP, 0)
        dispatch.deliver(TP, [Record(*TP, offset, b"a", b"") for offset in range(COUNT)])
        begun = [run for bundle in dispatch.take(0.0, 1) for run in bundle]
        first = next(run for run in begun if run.records[0].offset == 0)
        assert epoch.lanes.parked, "the other records wait for room"
        dispatch.release()
        dispatch.report([(first, [], True)], 0.0)  # its worker has died before it began the record
        assert 0 in [run.records[0].offset for bundle in dispatch.take(0.0, 1) for run in bundle]
