"""When one key is reported as hot."""

from collections import deque
from collections.abc import Hashable

import pytest

from penstock.core.progress.tracker import Tracker
from penstock.core.scheduling.hot_key_detector import BlockingKey, HotKeyDetector
from penstock.core.scheduling.lanes import Epoch, Lane


def epoch(lanes: dict[Hashable, int], *, partition: int = 0) -> Epoch:
    """With this many records waiting in the lane of each key."""
    made = Epoch(("orders", partition), 1, Tracker(0), None)
    made.lanes.by_key = {key: Lane(made, key, waiting=deque(range(count))) for key, count in lanes.items()}
    return made


def reported(watch: HotKeyDetector, epochs: list[Epoch], seconds: range, *, has_idle: bool = True) -> list[BlockingKey]:
    looks = [watch.look(epochs, has_idle=has_idle, now=float(now)) for now in seconds]
    return [each for each in looks if each is not None]


def test_a_key_with_most_waiting_records_is_reported_once_after_a_while() -> None:
    here, there = epoch({b"hot": 300, b"cold": 50}), epoch({b"other": 100}, partition=1)
    watch = HotKeyDetector()
    assert reported(watch, [here, there], range(10)) == []
    assert reported(watch, [here, there], range(10, 60)) == [BlockingKey(here.lanes.by_key[b"hot"], 300, 450, 10.0)]


def test_a_key_is_reported_again_after_it_was_not_hot_for_a_while() -> None:
    hot, even = epoch({b"hot": 300}), epoch({b"hot": 300, b"too": 300})
    watch = HotKeyDetector()
    assert len(reported(watch, [hot], range(15))) == 1
    assert reported(watch, [even], range(15, 20)) == []
    (again,) = reported(watch, [hot], range(20, 40))
    assert again.seconds == 10.0


def test_records_without_a_key_that_keep_their_order_count_as_one_key() -> None:
    keyless = epoch({None: 300})
    assert [each.lane.key for each in reported(HotKeyDetector(), [keyless], range(20))] == [None]


@pytest.mark.parametrize(
    "lanes",
    [
        {},
        {b"hot": 99},
        {b"hot": 300, b"too": 300},
        {b"hot": 150, b"a": 50, b"b": 50, b"c": 50},
        {"partition": 300},
        {"unordered": 300},
        {b"hot": 120, "unordered": 200},
    ],
    ids=["nothing", "a handful", "two", "half", "a whole partition", "no order", "beside what has no order"],
)
def test_these_keys_are_not_hot(lanes: dict[Hashable, int]) -> None:
    assert reported(HotKeyDetector(), [epoch(lanes)], range(60)) == []


def test_while_every_worker_is_busy_no_key_holds_up_anything() -> None:
    hot, watch = epoch({b"hot": 300}), HotKeyDetector()
    assert reported(watch, [hot], range(60), has_idle=False) == []
    assert len(reported(watch, [hot], range(60, 80))) == 1


def test_another_key_starts_its_own_time() -> None:
    watch = HotKeyDetector()
    assert reported(watch, [epoch({b"one": 300})], range(8)) == []
    (hot,) = reported(watch, [epoch({b"two": 300})], range(8, 30))
    assert (hot.lane.key, hot.seconds) == (b"two", 10.0)
