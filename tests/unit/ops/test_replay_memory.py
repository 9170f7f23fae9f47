"""A replay remembers the dead letters that it has sent."""

import random

import pytest

from penstock.core.progress.tracker import Tracker
from penstock.errors import StateError
from penstock.kafka.admin.consumer_groups import CommittedOffset
from penstock.kafka.admin.log_bounds import Bounds
from penstock.ops.group_lag import offset_map_of
from penstock.ops.replay import _commit, _tracker


def _finished(tracker: Tracker, count: int) -> set[int]:
    """Deliver this many offsets, and finish half of them at random."""
    tracker.deliver(list(range(count)))
    chosen = set(random.Random(7).sample(range(count), count // 2))
    tracker.finish_all(sorted(chosen))
    return chosen


def test_the_next_run_knows_the_replayed_offsets() -> None:
    chosen = _finished(Tracker(0), 20_000)
    tracker = Tracker(0)
    assert _finished(tracker, 20_000) == chosen
    kept = _commit(("dlq", 0), tracker)
    again = _tracker(CommittedOffset(*kept), Bounds(0, 20_000))
    fresh = again.deliver(list(range(kept[0], 20_000)))
    assert set(fresh) == set(range(20_000)) - chosen


def test_a_log_that_dropped_what_was_remembered_starts_where_it_starts_now() -> None:
    tracker = Tracker(0)
    tracker.deliver(list(range(10)))
    tracker.finish_all([5, 8])
    kept = _commit(("dlq", 0), tracker)
    assert offset_map_of(CommittedOffset(*kept)) == [(5, 6), (8, 9)]
    again = _tracker(CommittedOffset(*kept), Bounds(4, 10))
    assert list(again.deliver(list(range(4, 10)))) == [4, 6, 7, 9]


def test_offsets_too_scattered_for_the_metadata_are_refused() -> None:
    tracker = Tracker(0)
    _finished(tracker, 60_000)
    with pytest.raises(StateError, match="too scattered"):
        _commit(("dlq", 0), tracker)
