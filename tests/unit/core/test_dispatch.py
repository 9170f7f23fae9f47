"""The dispatcher's rules, driven through random histories and named cases."""

from collections import defaultdict

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from penstock import Record, Retry
from penstock.core.decisions import Send, Tried
from penstock.core.dispatch import FULL_SECONDS, Dispatch
from penstock.core.lanes import BITMAP_SPAN, MAX_RANGES, Order, Run
from penstock.core.offset_map import MAX_BYTES, decode
from penstock.core.outcome import DONE, Done, Failed, Outcome, Outgoing, Skipped
from penstock.core.record import TopicPartition

PLACES: list[TopicPartition] = [("t", 0), ("t", 1), ("t", 2)]
OUTPUT = Done(Outgoing("out", None, b"x"))
FAILURE = Failed("OSError", "away")
POISON = Failed("Reject", "never", final=True)


def letter_of(tried: Tried, _failure: Failed) -> Outgoing:
    return Outgoing("dlq", tried.record.key, tried.record.value)


def make_dispatch(
    *,
    order: Order = "partition",
    concurrency: int = 2,
    max_in_flight: int = 40,
    attempts: int = 3,
    dead_letter: bool = True,
    null_keys_in_order: bool = False,
) -> Dispatch:
    return Dispatch(
        order=order,
        null_keys_in_order=null_keys_in_order,
        concurrency=concurrency,
        max_in_flight=max_in_flight,
        retry=Retry(attempts=attempts, first="1s", jitter=0),
        dead_letter_of=letter_of if dead_letter else None,
        random=lambda: 0.5,
    )


def records(place: TopicPartition, first: int, count: int) -> list[Record]:
    """Keys come round every few offsets, and some records have none."""
    keys = [b"a", b"b", b"c", b"a", None]
    return [Record(*place, offset, keys[offset % 5], b"") for offset in range(first, first + count)]


def take(dispatch: Dispatch, now: float = 0.0, size: int = 1_000) -> list[Run]:
    """The runs of all bundles, each worker free again at once: these tests look at lanes."""
    runs = []
    for bundle in dispatch.take(now, size):
        runs += bundle
        dispatch.release()
    return runs


class DispatchMachine(RuleBasedStateMachine):
    """Partitions come and go while records are fetched, attempted, retried, sent and acknowledged in any order."""

    order: Order = "partition"

    def __init__(self) -> None:
        super().__init__()
        self.dispatch = make_dispatch(order=self.order)
        self.now = 0.0
        self.fetch_at: dict[TopicPartition, int] = {}  # where the fetcher of each owned partition stands
        self.delivered = 0
        self.unfinished: dict[TopicPartition, set[int]] = defaultdict(set)
        self.finished: dict[TopicPartition, set[int]] = defaultdict(set)  # in this epoch or an earlier one
        self.committed: dict[TopicPartition, tuple[int, str]] = defaultdict(lambda: (0, ""))
        self.known: dict[TopicPartition, set[int]] = defaultdict(set)  # what was finished at the last commit
        self.works: list[list[Run]] = []
        self.draining: set[TopicPartition] = set()
        self.sends: list[Send] = []
        self.attempted: dict[tuple[int, object], int] = {}  # the highest offset attempted, by epoch and lane

    # Ownership.

    @rule(place=st.sampled_from(PLACES))
    def assign(self, place: TopicPartition) -> None:
        if place not in self.fetch_at:
            offset, metadata = self.committed[place]
            finished = decode(offset, metadata)
            assert {o for start, end in finished for o in range(start, end)} == {
                o for o in self.known[place] if o > offset
            }, "the map says just what was finished at that commit"
            self.dispatch.assign(place, offset, metadata, finished)
            self.fetch_at[place] = offset
            self.unfinished[place] = set()
            self.finished[place] = set(self.known[place])

    @precondition(lambda self: self.fetch_at)
    @rule(data=st.data())
    def revoke_begins(self, data: st.DataObject) -> None:
        place = data.draw(st.sampled_from(sorted(self.fetch_at)))
        self.dispatch.stop_dispatching([place])
        self.draining.add(place)

    @precondition(lambda self: self.fetch_at)
    @rule(data=st.data())
    def revoke_ends(self, data: st.DataObject) -> None:
        """Drained or not: what is still out there belongs to a closed epoch from now on."""
        place = data.draw(st.sampled_from(sorted(self.fetch_at)))
        commit = self.dispatch.commits().get(place)
        if commit is not None:
            self.accept(place, commit)
        self.dispatch.close([place])
        del self.fetch_at[place]
        self.draining.discard(place)

    # Records.

    @precondition(lambda self: self.fetch_at)
    @rule(data=st.data(), count=st.integers(1, 30))
    def fetch(self, data: st.DataObject, count: int) -> None:
        place = data.draw(st.sampled_from(sorted(self.fetch_at)))
        epoch = next(e for e in self.dispatch.epochs if e.place == place)
        count = min(count, 40 - (self.delivered - self.dispatch.settled))
        if epoch.paused or count < 1:
            return
        batch = records(place, self.fetch_at[place], count)
        self.dispatch.deliver(place, batch)
        self.delivered += count
        self.fetch_at[place] += count
        if epoch.dispatching:
            self.unfinished[place].update({record.offset for record in batch} - self.finished[place])

    @rule(seconds=st.sampled_from([0.0, 0.3, 1.0, 4.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        pauses, _ = self.dispatch.balance(self.now)
        for pause in pauses:
            if pause.rewind_to is not None:
                place = pause.epoch.place
                self.fetch_at[place] = pause.rewind_to
                self.unfinished[place] = {o for o in self.unfinished[place] if o < pause.rewind_to}
                self.dispatch.rewound(place)

    @rule(size=st.sampled_from([1, 3, 100]))
    def take(self, size: int) -> None:
        for bundle in self.dispatch.take(self.now, size):
            assert 1 <= sum(len(run.records) for run in bundle) <= size
            for run in bundle:
                self.check_run(run)
            self.works.append(bundle)

    def check_run(self, run: Run) -> None:
        assert run.epoch.place not in self.draining
        assert run.epoch in self.dispatch.epochs
        offsets = [record.offset for record in run.records]
        assert offsets == sorted(offsets)
        assert not self.finished[run.epoch.place] & set(offsets), "what is finished does not run again"
        others = [other for work in self.works for other in work if other is not run and not other.done]
        running = {(o.epoch, r.offset) for o in others for r in o.records[o.taken :]}
        assert not running & {(run.epoch, offset) for offset in offsets}, "a record is with one worker"
        if not run.lane.ordered:
            return
        assert not any(other.lane is run.lane for other in others), "a lane is with one worker at a time"
        lanes = {self.lane_of(record) for record in run.records}
        assert len(lanes) == 1
        # Nothing runs before what precedes it in its lane.
        for record in run.records:
            lane = (run.epoch.number, self.lane_of(record))
            if self.order != "none" and not (self.order == "key" and record.key is None):
                earlier = [
                    o for o in self.unfinished[run.epoch.place]
                    if o < offsets[0] and o not in self.sent(run.epoch) and self.lane_of_offset(o) == lane[1]
                ]  # fmt: skip
                assert not earlier

    def sent(self, epoch: object) -> set[int]:
        """Attempted, and only the broker's word is missing."""
        return {send.tried.offset for send in self.sends if send.tried.epoch is epoch}

    def lane_of(self, record: Record) -> object:
        return self.lane_of_offset(record.offset)

    def lane_of_offset(self, offset: int) -> object:
        if self.order == "partition":
            return "all"
        key = [b"a", b"b", b"c", b"a", None][offset % 5]
        return offset if self.order == "none" or key is None else key

    @precondition(lambda self: self.works)
    @rule(data=st.data(), outcomes=st.lists(st.sampled_from([DONE, OUTPUT, Skipped(), POISON, FAILURE]), max_size=6))
    def report(self, data: st.DataObject, outcomes: list[Outcome]) -> None:
        bundle = data.draw(st.sampled_from(self.works))
        run = next(each for each in bundle if not each.done)
        left = len(run.records) - run.taken
        outcomes = outcomes[:left]
        if run.lane.ordered and FAILURE in outcomes:  # a worker stops there
            outcomes = outcomes[: outcomes.index(FAILURE) + 1]
        stopped = run.lane.ordered and FAILURE in outcomes
        last = stopped or len(outcomes) == left or data.draw(st.booleans())
        done, place = run.records[run.taken : run.taken + len(outcomes)], run.epoch.place
        current = run.epoch in self.dispatch.epochs
        consequences = self.dispatch.report([(run, outcomes, last)], now=self.now)
        run.done = last
        if all(each.done for each in bundle):
            self.works.remove(bundle)
            self.dispatch.release()
        if not current:
            assert not consequences.sends
            assert not consequences.finished
            return
        for record, outcome in zip(done, outcomes, strict=True):
            if outcome in (DONE, Skipped()):
                self.finish(place, record.offset)
        self.sends.extend(consequences.sends)

    def finish(self, place: TopicPartition, offset: int) -> None:
        self.unfinished[place].remove(offset)
        self.finished[place].add(offset)

    @precondition(lambda self: self.sends)
    @rule(data=st.data())
    def broker_acknowledges(self, data: st.DataObject) -> None:
        send = self.sends.pop(data.draw(st.integers(0, len(self.sends) - 1)))
        current = send.tried.epoch in self.dispatch.epochs
        assert self.dispatch.acknowledge(send) == current
        if current:
            self.finish(send.tried.epoch.place, send.tried.offset)

    @rule()
    def commit(self) -> None:
        for place, commit in self.dispatch.commits().items():
            self.accept(place, commit)
            self.dispatch.committed(place, commit)

    def accept(self, place: TopicPartition, commit: tuple[int, str]) -> None:
        assert commit[0] >= self.committed[place][0], "a group's offset never goes back"
        self.committed[place] = commit
        self.known[place] = set(self.finished[place])

    # What always holds.

    @invariant()
    def commit_points_never_pass_unfinished_records(self) -> None:
        for epoch in self.dispatch.epochs:
            expected = min(self.unfinished[epoch.place], default=None)
            if expected is not None:
                assert epoch.tracker.commit_point == expected
            assert epoch.tracker.unfinished == len(self.unfinished[epoch.place])

    @invariant()
    def bounds_hold(self) -> None:
        assert len(self.works) <= 2
        in_flight = sum(len(self.unfinished[epoch.place]) for epoch in self.dispatch.epochs)
        assert self.delivered - self.dispatch.settled == in_flight
        assert in_flight <= 40

    def teardown(self) -> None:
        """Whatever happened, what is owned can be finished: nothing is stuck, nothing is forgotten."""
        for _ in range(1_000):
            self.now += 60
            self.dispatch.balance(self.now)
            self.works.extend(self.dispatch.take(self.now, 10))
            if not self.works:
                break
            for bundle in self.works:
                for run in bundle:
                    if not run.done:
                        outcomes = [DONE] * (len(run.records) - run.taken)
                        self.sends.extend(self.dispatch.report([(run, outcomes, True)], now=self.now).sends)
                self.dispatch.release()
            self.works.clear()
        for send in self.sends:
            self.dispatch.acknowledge(send)
        for epoch in self.dispatch.epochs:
            assert epoch.drained
            assert epoch.in_progress == 0
            if epoch.place not in self.draining:
                assert epoch.tracker.unfinished == 0
                assert not epoch.lanes, "idle lanes are forgotten"


class KeyOrderMachine(DispatchMachine):
    order = "key"


class NoOrderMachine(DispatchMachine):
    order = "none"


TestPartitionOrder = DispatchMachine.TestCase
TestKeyOrder = KeyOrderMachine.TestCase
TestNoOrder = NoOrderMachine.TestCase
TestPartitionOrder.settings = TestKeyOrder.settings = TestNoOrder.settings = settings(
    max_examples=100, stateful_step_count=60, deadline=None
)


def test_a_retry_holds_its_own_lane_and_no_other() -> None:
    dispatch = make_dispatch(concurrency=8)
    for place in PLACES[:2]:
        dispatch.assign(place, 0)
        dispatch.deliver(place, records(place, 0, 2))
    failing, other = take(dispatch, 0.0)
    consequences = dispatch.report([(failing, [FAILURE], True)], now=0.0)
    assert [(tried.offset, delay) for tried, _, delay in consequences.retried] == [(0, 1.0)]
    dispatch.report([(other, [DONE, DONE], True)], now=0.0)
    dispatch.deliver(other.epoch.place, records(other.epoch.place, 2, 1))
    assert [run.epoch for run in take(dispatch, 0.5)] == [other.epoch]
    assert dispatch.next_due() == 1.0
    (again,) = take(dispatch, 1.0)
    assert [(record.offset, again.epoch.attempt_at(record.offset)) for record in again.records] == [(0, 2), (1, 1)]
    assert dispatch.next_due() is None


def test_a_dead_letter_counts_only_once_the_broker_has_it() -> None:
    dispatch = make_dispatch()
    epoch = dispatch.assign(("t", 0), 0)
    dispatch.deliver(("t", 0), records(("t", 0), 0, 2))
    (run,) = take(dispatch, 0.0)
    consequences = dispatch.report([(run, [POISON, DONE], True)], now=0.0)
    (send,) = consequences.sends
    assert send.outgoing.topic == "dlq"
    assert send.failure == POISON
    ((offset, metadata),) = dispatch.commits().values()
    assert (offset, decode(offset, metadata)) == (0, [(1, 2)])
    assert not epoch.drained
    assert dispatch.acknowledge(send)
    assert dispatch.commits() == {("t", 0): (2, "")}
    assert epoch.drained


def test_without_a_dead_letter_topic_the_last_attempt_halts_and_the_commit_point_stays() -> None:
    dispatch = make_dispatch(attempts=1, dead_letter=False)
    dispatch.assign(("t", 0), 0)
    dispatch.deliver(("t", 0), records(("t", 0), 0, 3))
    (run,) = take(dispatch, 0.0)
    consequences = dispatch.report([(run, [DONE, FAILURE], True)], now=0.0)
    assert consequences.halted is not None
    assert consequences.halted[0].offset == 1
    assert dispatch.commits() == {("t", 0): (1, "")}


def test_an_output_that_the_broker_never_takes_fails_its_record() -> None:
    dispatch = make_dispatch()
    dispatch.assign(("t", 0), 0)
    dispatch.deliver(("t", 0), records(("t", 0), 0, 1))
    (run,) = take(dispatch, 0.0)
    (output,) = dispatch.report([(run, [OUTPUT], True)], now=0.0).sends
    (letter,) = dispatch.refuse(output, POISON).sends
    assert letter.failure == POISON
    dispatch.acknowledge(letter)
    assert dispatch.commits() == {("t", 0): (1, "")}


def test_late_results_of_a_closed_epoch_do_not_touch_the_next_one() -> None:
    dispatch = make_dispatch()
    dispatch.assign(("t", 0), 0)
    dispatch.deliver(("t", 0), records(("t", 0), 0, 2))
    (run,) = take(dispatch, 0.0)
    (output,) = dispatch.report([(run, [OUTPUT], False)], now=0.0).sends
    dispatch.close([("t", 0)])
    fresh = dispatch.assign(("t", 0), 0)
    dispatch.deliver(("t", 0), records(("t", 0), 0, 2))
    late = dispatch.report([(run, [DONE], True)], now=0.0)
    assert not late.finished
    assert not dispatch.acknowledge(output)
    assert not dispatch.refuse(output, POISON).sends
    assert fresh.tracker.commit_point == 0
    (again,) = take(dispatch, 0.0)
    assert [record.offset for record in again.records] == [0, 1]


def test_a_stuck_partition_gives_back_what_the_others_need() -> None:
    dispatch = make_dispatch(max_in_flight=40, concurrency=8)
    stuck, free = dispatch.assign(("t", 0), 0), dispatch.assign(("t", 1), 0)
    dispatch.deliver(("t", 0), records(("t", 0), 0, 40))
    (run,) = take(dispatch, 0.0)
    dispatch.report([(run, [FAILURE], True)], now=0.0)
    assert dispatch.balance(0.0) == ([], [])
    ((pause,), _) = dispatch.balance(FULL_SECONDS)
    assert (pause.epoch, pause.rewind_to) == (stuck, 20)
    assert stuck.tracker.unfinished == 20
    # What was on its way from before the rewind is dropped, or offsets 20 to 29 would be taken for a gap.
    dispatch.deliver(("t", 0), records(("t", 0), 30, 5))
    assert stuck.tracker.unfinished == 20
    dispatch.deliver(("t", 1), records(("t", 1), 0, 10))
    assert [run.epoch for run in take(dispatch, 0.5)] == [free]
    dispatch.rewound(("t", 0))
    (retry,) = take(dispatch, 1.0)
    dispatch.report([(retry, [DONE] * 20, True)], now=1.0)
    assert dispatch.balance(1.0) == ([], [stuck])
    dispatch.deliver(("t", 0), records(("t", 0), 20, 1))
    assert stuck.tracker.commit_point == 20


def test_caught_up_means_finished_up_to_the_ends_seen() -> None:
    dispatch = make_dispatch()
    dispatch.assign(("t", 0), 0)
    dispatch.assign(("t", 1), None)
    ends = {("t", 0): 2, ("t", 1): 0}
    assert not dispatch.caught_up(ends)
    dispatch.reach(("t", 1), 0)
    dispatch.deliver(("t", 0), records(("t", 0), 0, 2))
    (run,) = take(dispatch, 0.0)
    assert not dispatch.caught_up(ends)
    dispatch.report([(run, [DONE, DONE], True)], now=0.0)
    assert dispatch.caught_up(ends)


def test_what_comes_for_partitions_that_are_gone_is_dropped() -> None:
    dispatch = make_dispatch()
    dispatch.deliver(("t", 0), records(("t", 0), 0, 3))
    dispatch.reach(("t", 0), 5)
    dispatch.committed(("t", 0), (5, ""))
    dispatch.rewound(("t", 0))
    assert dispatch.settled == 3
    assert take(dispatch, 0.0) == []
    assert dispatch.commits() == {}


def keyed(place: TopicPartition, *keys: bytes | None, first: int = 0) -> list[Record]:
    return [Record(*place, first + n, key, b"") for n, key in enumerate(keys)]


def test_keys_run_side_by_side_and_each_in_order() -> None:
    dispatch = make_dispatch(order="key", concurrency=10)
    dispatch.assign(("t", 0), 0)
    dispatch.deliver(("t", 0), keyed(("t", 0), b"a", b"b", b"a", b"c"))
    assert [[r.offset for r in run.records] for run in take(dispatch)] == [[0, 2], [1], [3]]


def test_null_keys_have_no_order_unless_asked() -> None:
    for in_order, expected in ((False, [[0], [1], [2]]), (True, [[0]])):
        dispatch = make_dispatch(order="key", concurrency=10, null_keys_in_order=in_order)
        dispatch.assign(("t", 0), 0)
        dispatch.deliver(("t", 0), keyed(("t", 0), None, None, None))
        bundles = dispatch.take(0.0, 1)
        assert [[r.offset for run in bundle for r in run.records] for bundle in bundles] == expected


def test_without_order_a_retry_waits_alone_and_the_rest_goes_on() -> None:
    dispatch = make_dispatch(order="none", concurrency=10)
    dispatch.assign(("t", 0), 0)
    dispatch.deliver(("t", 0), records(("t", 0), 0, 4))
    outcomes: list[Outcome] = [DONE, FAILURE, DONE, DONE]
    dispatch.report([(run, [each], True) for run, each in zip(take(dispatch, size=1), outcomes, strict=True)], now=0.0)
    ((offset, metadata),) = dispatch.commits().values()
    assert (offset, decode(offset, metadata)) == (1, [(2, 4)])
    (retry,) = take(dispatch, 1.0)
    assert [(r.offset, retry.epoch.attempt_at(r.offset)) for r in retry.records] == [(1, 2)]
    dispatch.report([(retry, [DONE], True)], now=1.0)
    assert dispatch.commits() == {("t", 0): (4, "")}


def test_a_restart_does_not_repeat_what_the_offset_map_knows() -> None:
    before = make_dispatch(order="none", concurrency=10)
    before.assign(("t", 0), 0)
    before.deliver(("t", 0), records(("t", 0), 0, 6))
    outcomes: list[Outcome] = [DONE, FAILURE, DONE, FAILURE, DONE, DONE]
    before.report([(run, [each], True) for run, each in zip(take(before, size=1), outcomes, strict=True)], now=0.0)
    ((offset, metadata),) = before.commits().values()

    after = make_dispatch(order="none", concurrency=10)
    after.assign(("t", 0), offset, metadata, decode(offset, metadata))
    after.deliver(("t", 0), records(("t", 0), offset, 7))
    assert [record.offset for run in take(after) for record in run.records] == [1, 3, 6, 7]
    assert after.commits() == {}, "nothing new is known yet"


def test_lanes_wait_rather_than_finish_what_no_commit_could_say() -> None:
    """Every other record is stuck, far more of them than a commit's metadata can tell apart."""
    total = 3 * BITMAP_SPAN
    dispatch = make_dispatch(order="none", concurrency=total, max_in_flight=2 * total)
    epoch = dispatch.assign(("t", 0), 0)
    dispatch.deliver(("t", 0), records(("t", 0), 0, total))
    held: list[Run] = []
    for _ in range(total):
        bundles = dispatch.take(0.0, 1)
        if not bundles:
            break
        for number, (run,) in enumerate(bundles):
            if run.records[0].offset % 2 or number == 0:
                held.append(run)
            else:
                dispatch.report([(run, [DONE], True)], now=0.0)
    ((offset, metadata),) = dispatch.commits().values()
    assert 0 < len(metadata) <= MAX_BYTES
    assert decode(offset, metadata) == epoch.tracker.finished_ranges()
    assert epoch.highest_taken < BITMAP_SPAN, "what could not be told apart did not start"
    for run in held:
        dispatch.report([(run, [DONE], True)], now=0.0)
    while bundles := dispatch.take(0.0, 1_000):
        for bundle in bundles:
            for run in bundle:
                dispatch.report([(run, [DONE] * len(run.records), True)], now=0.0)
    assert dispatch.commits() == {("t", 0): (total, "")}


def test_one_stuck_record_does_not_stop_what_follows_it_however_far() -> None:
    total = 2 * BITMAP_SPAN
    dispatch = make_dispatch(order="none", concurrency=4, max_in_flight=2 * total)
    dispatch.assign(("t", 0), 0)
    dispatch.deliver(("t", 0), records(("t", 0), 0, total))
    ((stuck,), *_) = dispatch.take(0.0, 1)
    for _ in range(3):
        dispatch.release()
    while bundles := dispatch.take(0.0, 1_000):
        for bundle in bundles:
            for run in bundle:
                dispatch.report([(run, [DONE] * len(run.records), True)], now=0.0)
            dispatch.release()
    ((offset, metadata),) = dispatch.commits().values()
    assert offset == 0
    finished = decode(offset, metadata)
    assert finished[-1][1] == total
    assert len(finished) < MAX_RANGES
    dispatch.report([(stuck, [DONE], True)], now=0.0)
