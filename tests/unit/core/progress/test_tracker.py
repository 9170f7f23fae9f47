"""The tracker against a plain model: sets of offsets."""

from itertools import count, pairwise

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.core.progress.tracker import Tracker


class TrackerMachine(RuleBasedStateMachine):
    """Deliver with gaps, finish in any order, retract, reach the end: the commit point always equals the model's."""

    def __init__(self) -> None:
        super().__init__()
        self.tracker = Tracker(10)
        self.next = 10  # the commit point if all records are finished
        self.read = 10  # the position of the consumer
        self.unfinished: set[int] = set()
        self.restored: set[int] = set()
        self.highest_commit = 10

    @initialize(lengths=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), max_size=5))
    def restore(self, lengths: list[tuple[int, int]]) -> None:
        """Some offsets above the commit point were finished by an earlier epoch."""
        at, ranges = 10, []
        for unfinished, finished in lengths:
            ranges.append((at + unfinished, at + unfinished + finished))
            at += unfinished + finished
        self.tracker = Tracker(10, ranges)
        self.restored = {offset for start, end in ranges for offset in range(start, end)}

    def skip_restored(self) -> None:
        while self.next in self.restored:
            self.next += 1

    @rule(gaps=st.lists(st.sampled_from([0, 0, 0, 0, 0, 0, 1, 5, 1_000_000]), max_size=12))
    def deliver(self, gaps: list[int]) -> None:
        """Restored offsets are delivered too, because Kafka does not know the map. They must not be handled again."""
        offsets = []
        for gap in gaps:
            self.read += gap
            offsets.append(self.read)
            self.read += 1
        fresh = [offset for offset in offsets if offset not in self.restored]
        assert list(self.tracker.deliver(offsets)) == fresh
        self.unfinished.update(fresh)
        self.next = max(self.next, self.read)
        self.skip_restored()

    @precondition(lambda self: self.unfinished)
    @rule(data=st.data())
    def finish_one(self, data: st.DataObject) -> None:
        offset = data.draw(st.sampled_from(sorted(self.unfinished)))
        self.tracker.finish(offset)
        self.unfinished.remove(offset)

    @precondition(lambda self: self.unfinished)
    @rule(data=st.data())
    def finish_several(self, data: st.DataObject) -> None:
        known = sorted(self.unfinished)
        start = data.draw(st.integers(0, len(known) - 1))
        chosen = data.draw(st.permutations(known[start : start + data.draw(st.integers(1, 8))]))
        self.tracker.finish_all(chosen)
        self.unfinished.difference_update(chosen)

    @precondition(lambda self: self.unfinished)
    @rule(data=st.data())
    def finish_a_stretch(self, data: st.DataObject) -> None:
        first = data.draw(st.sampled_from(sorted(self.unfinished)))
        longest = next(length for length in count(1) if first + length not in self.unfinished)
        stretch = range(first, first + data.draw(st.integers(1, longest)))
        self.tracker.finish_all(stretch)
        self.unfinished.difference_update(stretch)

    @precondition(lambda self: self.unfinished)
    @rule(data=st.data())
    def retract(self, data: st.DataObject) -> None:
        """Only a tail without finished offsets may be retracted; the model finds where such tails begin."""
        offset = data.draw(st.sampled_from(sorted(self.unfinished)))
        delivered_above = [o for o in self.tracker._offsets if o >= offset]
        if set(delivered_above) <= self.unfinished:
            self.tracker.retract(offset)
            self.unfinished.difference_update(delivered_above)
            self.next = self.read = offset
            # Restored offsets above it were delivered and forgotten, so they would be handled again.
            self.restored = {each for each in self.restored if self.tracker._is_restored(each) or each < offset}
        else:
            with pytest.raises(ValueError, match="already finished"):
                self.tracker.retract(offset)

    @rule(beyond=st.integers(0, 100))
    def reach_the_end(self, beyond: int) -> None:
        self.read += beyond
        self.next = max(self.next, self.read)
        self.skip_restored()
        self.tracker.reach(self.read)

    @invariant()
    def commit_point_is_the_lowest_unfinished(self) -> None:
        expected = min(self.unfinished, default=self.next)
        assert self.tracker.commit_point == expected
        assert self.tracker.unfinished == len(self.unfinished)

    @invariant()
    def a_new_epoch_knows_all_that_was_finished(self) -> None:
        """The ranges of the map are exactly the offsets above the commit point that must not be repeated."""
        point, ranges = self.tracker.commit_point, self.tracker.finished_ranges()
        assert point is not None
        assert all(start < end for start, end in ranges)
        assert all(one[1] < two[0] for one, two in pairwise([(point, point), *ranges]))
        successor = Tracker(point, ranges)
        for offset in [*self.unfinished, self.next]:
            assert not successor._is_restored(offset)
        for offset in self.restored:
            assert offset < point or successor._is_restored(offset)
        for offset in self.tracker._offsets:
            assert offset < point or successor._is_restored(offset) == (offset not in self.unfinished)

    @invariant()
    def ranges_are_counted_as_they_are(self) -> None:
        assert self.tracker.count_finished_ranges() == len(self.tracker.finished_ranges())

    @invariant()
    def the_highest_finished_is_known(self) -> None:
        known = [offset for offset in self.tracker._offsets if offset not in self.unfinished]
        assert self.tracker.highest_finished() == max(known, default=-1)

    @invariant()
    def it_never_goes_back(self) -> None:
        point = self.tracker.commit_point
        assert point is not None
        assert point >= self.highest_commit
        self.highest_commit = point


TestTracker = TrackerMachine.TestCase
TestTracker.settings = settings(max_examples=100)


def test_before_anything_is_known_there_is_no_commit_point() -> None:
    assert Tracker().commit_point is None


def test_a_log_that_starts_late_does_not_hold_commits_back() -> None:
    tracker = Tracker(0)
    tracker.deliver([5_000, 5_001])
    assert tracker.commit_point == 5_000
    tracker.finish_all([5_000, 5_001])
    assert tracker.commit_point == 5_002


def test_a_transaction_marker_at_the_end_is_passed() -> None:
    tracker = Tracker(0)
    tracker.deliver([0, 1])
    tracker.reach(3)
    assert tracker.commit_point == 0
    tracker.finish_all([0, 1])
    assert tracker.commit_point == 3


def test_finished_offsets_do_not_pile_up() -> None:
    tracker = Tracker(0)
    for first in range(0, 100_000, 1_000):
        tracker.deliver(range(first, first + 1_000))
        tracker.finish_all(range(max(0, first - 1_000), first))
        assert tracker.commit_point == first
        assert len(tracker._marks) < 10_000


def test_a_stale_reach_changes_nothing() -> None:
    tracker = Tracker(0)
    tracker.deliver([0, 1, 2])
    tracker.reach(1)
    tracker.finish_all([0, 1, 2])
    assert tracker.commit_point == 3


def test_nothing_to_deliver_or_finish_is_fine() -> None:
    tracker = Tracker(7)
    tracker.deliver([])
    tracker.finish_all([])
    assert tracker.commit_point == 7


@pytest.mark.parametrize("offsets", [[4], [9, 9], [9, 8]])
def test_offsets_that_do_not_ascend_are_reported_as_a_bug(offsets: list[int]) -> None:
    tracker = Tracker(5)
    with pytest.raises(ValueError, match="do not ascend"):
        tracker.deliver(offsets)


def test_finishing_twice_or_what_was_never_delivered_is_reported_as_a_bug() -> None:
    tracker = Tracker(0)
    tracker.deliver([0, 1, 5, 6])
    tracker.finish(1)
    with pytest.raises(ValueError, match="already finished"):
        tracker.finish(1)
    with pytest.raises(ValueError, match="already finished"):
        tracker.finish_all([0, 1])
    for unknown in (3, 7, -1):
        with pytest.raises(ValueError, match="was not delivered"):
            tracker.finish(unknown)
    with pytest.raises(ValueError, match="was not delivered"):
        Tracker(0).finish(0)
    dense = Tracker(5)
    dense.deliver([5, 6, 7])
    dense.finish_all([7, 5])
    for wrong in (7, 4):
        with pytest.raises(ValueError, match="already finished" if wrong == 7 else "not delivered"):
            dense.finish_all([wrong])
    with pytest.raises(ValueError, match="not delivered"):
        dense.finish_all([8])
    with pytest.raises(ValueError, match="already finished"):
        dense.finish_all([6, 6])


@pytest.mark.parametrize("wrong", [[1, 4_000], [7, 7, 4_500], [7, 4_500, 4_500]])
def test_finishing_twice_is_reported_as_a_bug_if_the_offsets_are_far_apart_too(wrong: list[int]) -> None:
    tracker = Tracker(0)
    tracker.deliver(range(5_000))
    tracker.finish_all([4_000, 10])
    assert tracker.unfinished == 4_998
    assert tracker.finished_ranges() == [(10, 11), (4_000, 4_001)]
    with pytest.raises(ValueError, match="already finished"):
        tracker.finish_all(wrong)


@pytest.mark.parametrize("wrong", [range(4, 7), range(7, 10)])
def test_a_range_that_was_not_delivered_or_is_finished_is_reported_as_a_bug(wrong: range) -> None:
    tracker = Tracker(5)
    tracker.deliver([5, 6, 7, 8])
    with pytest.raises(ValueError, match="not delivered"):
        tracker.finish_all(wrong)
    tracker.finish_all(range(6, 8))
    with pytest.raises(ValueError, match="already finished"):
        tracker.finish_all(range(5, 7))


def test_restored_offsets_are_dropped_even_after_a_commit_below_them() -> None:
    tracker = Tracker(3, [(4, 500), (501, 1_000)])
    assert tracker.deliver([3]) == [3]
    tracker.finish(3)
    assert tracker.commit_point == 500
    assert tracker.deliver(range(4, 800)) == [500]
    tracker.finish(500)
    assert tracker.commit_point == 1_000
    assert tracker.deliver(range(800, 1_002)) == [1_000, 1_001]
