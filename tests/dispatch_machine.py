"""A state machine that drives the dispatcher's rules through random histories, for tests with each order and limit."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from unittest.mock import patch

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dispatch_helpers import (
    AWAY,
    BLOCKED,
    DELAYED,
    FAILURE,
    LONG_DELAYED,
    OUTPUT,
    OUTPUTS,
    POISON,
    SLOW_FAILURE,
    make_dispatch,
    records,
)
from penstock import Record
from penstock.core.failures.outcome import DONE, Delayed, Failed, Outcome, Skipped
from penstock.core.failures.retry_topic import RetryInfo
from penstock.core.progress.offset_map import decode
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling import epoch_parts, lanes, outcome_rules, schedule
from penstock.core.scheduling.at_rest import awaits_outcomes
from penstock.core.scheduling.bundle_size import QUICK
from penstock.core.scheduling.effects import OutputSet, Returned, Send
from penstock.core.scheduling.fair_queue import Fairness
from penstock.core.scheduling.lanes import Epoch, LaneRun, Order

RETRY_PLACE: TopicPartition = ("t.retry.1m", 0)
TPS: list[TopicPartition] = [("t", 0), ("t", 1), RETRY_PLACE]
OUTCOMES: list[Outcome] = [DONE, OUTPUT, OUTPUTS, Skipped(), POISON, FAILURE, SLOW_FAILURE, DELAYED, LONG_DELAYED]
UNFINISHED = (FAILURE, SLOW_FAILURE, DELAYED, LONG_DELAYED, BLOCKED, AWAY)


def excesses(offsets: Iterable[int]) -> dict[int, int]:
    """Every third value is a large one."""
    return {offset: 1_000 * (1 + offset % 5) for offset in offsets if offset % 3 == 0}


class DispatchMachine(RuleBasedStateMachine):
    """Partitions come and go while records are fetched, attempted, retried, sent and acknowledged in any order."""

    order: Order = "partition"
    fairness: Fairness | None = None
    outcomes: Sequence[Outcome] = OUTCOMES
    most_works = 2

    def __init__(self) -> None:
        super().__init__()
        # As offsets do not get far here, and runs are short.
        self.patches = [patch.object(schedule, "_SPLIT_OFFSETS", 10), patch.object(outcome_rules, "_LONG", 3)]
        if self.fairness is not None:
            self.patches += [
                patch.object(epoch_parts, "MAX_RANGES", 2),
                patch.object(epoch_parts, "BITMAP_SPAN", 3),
                patch.object(lanes, "BITMAP_SPAN", 3),
            ]
        for each in self.patches:
            each.start()
        self.make()
        self.now = 0.0
        self.due: list[float] = []  # of the retry topic's records, by offset
        self.fetch_at: dict[TopicPartition, int] = {}  # the fetch position of each owned partition
        self.delivered = 0
        self.unfinished: dict[TopicPartition, set[int]] = defaultdict(set)
        self.finished: dict[TopicPartition, set[int]] = defaultdict(set)  # in this epoch or an earlier one
        self.committed: dict[TopicPartition, tuple[int, str]] = defaultdict(lambda: (0, ""))
        self.known: dict[TopicPartition, set[int]] = defaultdict(set)  # what was finished at the last commit
        self.restored: dict[TopicPartition, set[int]] = defaultdict(set)  # what an earlier epoch had finished
        self.works: list[list[LaneRun]] = []
        self.draining: set[TopicPartition] = set()
        self.paused: set[TopicPartition] = set()  # one by one, by commands
        self.all_paused = False
        self.sends: list[Send] = []
        self.refused: list[OutputSet] = []  # of records of which the broker has refused an output
        self.delayed: dict[tuple[Epoch, int], float] = {}  # until when a record waits in memory
        self.attempted: dict[tuple[int, object], int] = {}  # the highest offset attempted, by epoch and lane

    def make(self) -> None:
        self.dispatch = make_dispatch(
            order=self.order, retry_topics=[60.0], max_in_flight_bytes=40_000, fairness=self.fairness
        )

    # Ownership.

    @rule(tp=st.sampled_from(TPS))
    def assign(self, tp: TopicPartition) -> None:
        if tp not in self.fetch_at:
            offset, metadata = self.committed[tp]
            finished = decode(offset, metadata)
            assert {o for start, end in finished for o in range(start, end)} == {
                o for o in self.known[tp] if o > offset
            }, "the map contains exactly what was finished at that commit"
            self.dispatch.assign(tp, offset, metadata, finished)
            self.fetch_at[tp] = offset
            self.unfinished[tp] = set()
            self.finished[tp] = set(self.known[tp])
            self.restored[tp] = set(self.known[tp])

    @precondition(lambda self: self.fetch_at)
    @rule(data=st.data())
    def revoke_begins(self, data: st.DataObject) -> None:
        tp = data.draw(st.sampled_from(sorted(self.fetch_at)))
        self.dispatch.stop_dispatching([tp])
        self.draining.add(tp)

    @precondition(lambda self: self.fetch_at)
    @rule(data=st.data())
    def revoke_ends(self, data: st.DataObject) -> None:
        """Drained or not: records in progress belong to a closed epoch from now on."""
        tp = data.draw(st.sampled_from(sorted(self.fetch_at)))
        commit = self.dispatch.commits().get(tp)
        if commit is not None:
            self.accept(tp, commit)
        self.dispatch.close([tp])
        del self.fetch_at[tp]
        self.draining.discard(tp)

    # Commands.

    @rule(tps=st.sets(st.sampled_from(TPS), max_size=2))
    def pause(self, tps: set[TopicPartition]) -> None:
        self.dispatch.commanded.pause(tps)
        self.paused |= tps
        self.all_paused |= not tps

    @rule(tps=st.sets(st.sampled_from(TPS), max_size=2))
    def resume(self, tps: set[TopicPartition]) -> None:
        self.dispatch.commanded.resume(tps)
        self.paused = self.paused - tps if tps else set()
        self.all_paused &= bool(tps)

    # Records.

    @precondition(lambda self: self.fetch_at)
    @rule(data=st.data(), count=st.integers(1, 30))
    def fetch(self, data: st.DataObject, count: int) -> None:
        self.fetch_from(data.draw(st.sampled_from(sorted(self.fetch_at))), count)

    def fetch_from(self, tp: TopicPartition, count: int) -> None:
        epoch = next(e for e in self.dispatch.epochs if e.tp == tp)
        count = min(count, 40 - (self.delivered - self.dispatch.settled))
        # Records still arrive until the fetcher is asked to pause.
        asleep = epoch.fetch_state.wake_at is not None and not epoch.fetch_state.rewinding
        if epoch.fetch_state.paused or asleep or count < 1:
            return
        batch = records(tp, self.fetch_at[tp], count)
        self.delivered += count
        if tp == RETRY_PLACE:
            self.fetch_returned(batch, listening=epoch.dispatching and not epoch.fetch_state.rewinding)
            return
        self.dispatch.deliver(tp, batch, excesses(each.offset for each in batch))
        self.fetch_at[tp] += count
        if epoch.dispatching:
            self.unfinished[tp].update({record.offset for record in batch} - self.finished[tp])

    def fetch_returned(self, batch: list[Record], *, listening: bool) -> None:
        tp = RETRY_PLACE
        while len(self.due) <= batch[-1].offset:  # some are due later than records that were written before them
            self.due.append(self.now + 0.5 * (len(self.due) % 4 == 0))
        own = {each.offset for each in batch if each.offset % 7 != 0}  # the others belong to another group
        waits = {o: max(0.0, self.due[o] - self.now) if o in own else 0.0 for o in (each.offset for each in batch)}
        said = [Returned(each, RetryInfo(2, waits[each.offset], of_this_group=each.offset in own)) for each in batch]
        large = excesses(each.offset for each in batch)
        begun = {each.record.offset for each in self.dispatch.deliver_returned(tp, said, self.now, large)}
        self.fetch_at[tp] = batch[-1].offset + 1
        end = min((offset for offset, wait in waits.items() if wait > 0), default=self.fetch_at[tp])
        due = {offset for offset in waits if offset < end} if listening else set()
        assert begun == due & own, "records that are due begin, up to the first that is not"
        self.unfinished[tp].update(begun - self.finished[tp])
        self.finished[tp].update(due - own)

    @rule(seconds=st.sampled_from([0.0, 0.3, 1.0, 4.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        pauses, _ = self.dispatch.balance(self.now)
        others = {each for each in self.dispatch.epochs if not each.is_ending} - {pause.epoch for pause in pauses}
        states = [each.fetch_state for each in others]
        assert not any(each.rewind_to is not None or (each.wake_at or self.now + 1) <= self.now for each in states)
        for pause in pauses:
            if pause.rewind_to is not None:
                tp = pause.epoch.tp
                self.fetch_at[tp] = pause.rewind_to
                self.unfinished[tp] = {o for o in self.unfinished[tp] if o < pause.rewind_to}
                # Skipped records of another group are delivered again too.
                self.finished[tp] = {o for o in self.finished[tp] if o < pause.rewind_to or o in self.restored[tp]}
                gone = [key for key in self.delayed if key[0] is pause.epoch and key[1] >= pause.rewind_to]
                for key in gone:  # it is fetched again, and its handler decides again
                    del self.delayed[key]
                self.dispatch.rewound(tp)

    @rule(size=st.sampled_from([1, 3, 100, QUICK]))
    def take(self, size: int) -> None:
        for bundle in self.dispatch.take(self.now, size):
            assert 1 <= sum(len(run.records) for run in bundle) <= size
            for run in bundle:
                self.check_run(run)
            self.works.append(bundle)
        self.works_changed()

    def works_changed(self) -> None:
        """For limits that depend on which works run and which are queued for a busy worker."""

    @property
    def running(self) -> list[list[LaneRun]]:
        """The works that workers have begun."""
        return self.works

    def check_run(self, run: LaneRun) -> None:
        assert run.epoch.tp not in self.draining
        assert not self.all_paused
        assert run.epoch.tp not in self.paused
        assert run.epoch in self.dispatch.epochs
        offsets = [record.offset for record in run.records]
        assert offsets == sorted(offsets) or not run.lane.ordered
        assert not self.finished[run.epoch.tp] & set(offsets), "a finished record does not run again"
        for record in run.records:
            assert self.delayed.pop((run.epoch, record.offset), 0.0) <= self.now, "a delayed record is not early"
        others = [other for work in self.works for other in work if other is not run and not other.done]
        running = {(o.epoch, r.offset) for o in others for r in o.records[o.collected :]}
        assert not running & {(run.epoch, offset) for offset in offsets}, "a record is with one worker"
        if not run.lane.ordered:
            return
        assert not any(other.lane is run.lane for other in others), "a lane is with one worker at a time"
        lanes = {self.lane_of(record) for record in run.records}
        assert len(lanes) == 1 or (run.lane.mixed and self.order == "key")
        # No record runs before the records in front of it in its lane or run.
        known = self.sent(run.epoch) | set(offsets)
        for record in run.records:
            if self.order != "none" and not (self.order == "key" and record.key is None):
                assert not [
                    o for o in self.unfinished[run.epoch.tp]
                    if o < record.offset and o not in known and self.lane_of_offset(o) == self.lane_of(record)
                ]  # fmt: skip

    def sent(self, epoch: object) -> set[int]:
        """Attempted, and only the broker's acknowledgement is missing."""
        return {send.tried.offset for send in self.sends if send.tried.epoch is epoch}

    def lane_of(self, record: Record) -> object:
        return self.lane_of_offset(record.offset)

    def lane_of_offset(self, offset: int) -> object:
        if self.order == "partition":
            return "all"
        key = [b"a", b"b", b"c", b"a", None][offset % 5]
        return offset if self.order == "none" or key is None else key

    @precondition(lambda self: self.works)
    @rule(data=st.data(), count=st.integers(0, 6))
    def report(self, data: st.DataObject, count: int) -> None:
        outcomes = data.draw(st.lists(st.sampled_from(self.outcomes), min_size=count, max_size=count))
        bundle = data.draw(st.sampled_from(self.running))
        run = next(each for each in bundle if not each.done)
        left = len(run.records) - run.collected
        outcomes = outcomes[:left]
        stops = [n for n, each in enumerate(outcomes) if each in UNFINISHED and run.lane.ordered]
        stopped = bool(stops)
        if stopped:  # a worker does no more of the run
            outcomes = outcomes[: stops[0] + 1]
        last = stopped or len(outcomes) == left or data.draw(st.booleans())
        self.note(run, outcomes, last=last)
        run.done = last
        if all(each.done for each in bundle):
            self.works.remove(bundle)
            self.dispatch.release()
            self.works_changed()

    def note(self, run: LaneRun, outcomes: list[Outcome], *, last: bool) -> None:
        done, tp = run.records[run.collected : run.collected + len(outcomes)], run.epoch.tp
        current = run.epoch in self.dispatch.epochs
        numbers = {record.offset: run.epoch.attempt_at(record.offset) for record in done}
        effects = self.dispatch.report([(run, outcomes, last)], now=self.now)
        if not current:
            assert not effects.sends
            assert not effects.finished
            return
        for record, outcome in zip(done, outcomes, strict=True):
            if outcome in (DONE, Skipped()):
                self.finish(tp, record.offset)
            elif isinstance(outcome, Delayed):
                assert run.epoch.attempt_at(record.offset) == numbers[record.offset], "a delay is no attempt"
        for tried, delayed in effects.delayed:
            self.delayed[tried.epoch, tried.offset] = self.now + delayed.seconds
        self.sends.extend(effects.sends)

    @precondition(lambda self: self.works)
    @rule(data=st.data())
    def worker_is_stuck(self, data: st.DataObject) -> None:
        """The worker keeps the current record and those before it; the others are taken back."""
        bundle = data.draw(st.sampled_from(self.running))
        run, *pending = [each for each in bundle if not each.done]
        for each in pending:
            self.dispatch.report([(each, (), True)], now=self.now)
            each.done = True
        if run.lane.mixed or not run.lane.ordered:
            begun = data.draw(st.integers(run.collected, len(run.records)))
            # It began the last of them, so it has finished the others.
            self.note(run, [DONE] * max(0, begun - run.collected - 1), last=False)
            if begun < len(run.records) or run.lane.mixed:
                self.dispatch.report([(run.split(run.records[begun:]), (), True)], now=self.now)

    def finish(self, tp: TopicPartition, offset: int) -> None:
        self.unfinished[tp].remove(offset)
        self.finished[tp].add(offset)

    @precondition(lambda self: self.sends)
    @rule(data=st.data())
    def broker_acknowledges(self, data: st.DataObject) -> None:
        send = self.sends.pop(data.draw(st.integers(0, len(self.sends) - 1)))
        finishes = send.tried.epoch in self.dispatch.epochs and not self.lacks_others(send)
        assert self.dispatch.acknowledge(send) == finishes, "a record is finished with the last of its outputs"
        if finishes:
            self.finish(send.tried.epoch.tp, send.tried.offset)

    def lacks_others(self, send: Send) -> bool:
        """Another output of this record is on its way, or was refused."""
        return send.outputs is not None and (
            send.outputs in self.refused or any(other.outputs is send.outputs for other in self.sends)
        )

    @precondition(lambda self: any(send.failure is None for send in self.sends))
    @rule(data=st.data())
    def broker_refuses(self, data: st.DataObject) -> None:
        """An output: the record fails once, however many of its outputs are refused, and goes to the dead letters."""
        send = data.draw(st.sampled_from([send for send in self.sends if send.failure is None]))
        self.sends.remove(send)
        effects = self.dispatch.refuse(send, Failed("OutputRefused", "too large", final=True))
        fails = send.tried.epoch in self.dispatch.epochs and send.outputs not in self.refused
        assert [each.outgoing.topic for each in effects.sends] == ["dlq"] * fails
        if send.outputs is not None:
            self.refused.append(send.outputs)
        self.sends.extend(effects.sends)

    @rule()
    def commit(self) -> None:
        for tp, commit in self.dispatch.commits().items():
            self.accept(tp, commit)
            self.dispatch.committed(tp, commit)

    def accept(self, tp: TopicPartition, commit: tuple[int, str]) -> None:
        assert commit[0] >= self.committed[tp][0], "a group's offset never goes back"
        self.committed[tp] = commit
        self.known[tp] = set(self.finished[tp])

    # Invariants.

    @invariant()
    def commit_points_never_pass_unfinished_records(self) -> None:
        for epoch in self.dispatch.epochs:
            expected = min(self.unfinished[epoch.tp], default=None)
            if expected is not None:
                assert epoch.tracker.commit_point == expected
            assert epoch.tracker.unfinished == len(self.unfinished[epoch.tp])

    @invariant()
    def records_are_pending_until_their_last_answer(self) -> None:
        for epoch in self.dispatch.epochs:
            assert epoch.pending.sending == len({
                send.tried.offset for send in self.sends
                if send.tried.epoch is epoch and send.outputs not in self.refused
            })  # fmt: skip

    @invariant()
    def bounds_hold(self) -> None:
        assert len(self.works) <= self.most_works
        in_flight = sum(len(self.unfinished[epoch.tp]) for epoch in self.dispatch.epochs)
        assert self.delivered - self.dispatch.settled == in_flight == self.dispatch.in_flight.unfinished <= 40

    @invariant()
    def no_partition_with_unfinished_records_is_overlooked(self) -> None:
        busy = [epoch for epoch in self.dispatch.epochs if epoch.tracker.unfinished]
        assert self.dispatch.awaits_outcomes >= awaits_outcomes(busy, self.dispatch.in_flight)

    @invariant()
    def a_pause_is_for_what_was_named(self) -> None:
        for epoch in self.dispatch.epochs:
            assert epoch.tp in self.draining or epoch.is_paused is (self.all_paused or epoch.tp in self.paused)

    @invariant()
    def bytes_in_flight_are_those_of_unfinished_records(self) -> None:
        for epoch in self.dispatch.epochs:
            assert epoch.large_values.excesses == excesses(self.unfinished[epoch.tp])
            assert epoch.large_values.excess == sum(epoch.large_values.excesses.values())
        assert self.dispatch.in_flight.excess == sum(epoch.large_values.excess for epoch in self.dispatch.epochs)

    def teardown(self) -> None:
        """After any history, all records of owned partitions can be finished: none is stuck or forgotten."""
        for each in self.patches:
            each.stop()
        self.dispatch.commanded.resume()
        for _ in range(1_000):
            self.now += 60
            self.dispatch.balance(self.now)
            # Records may wait for room in the offset map until the broker has acknowledged others.
            acknowledged, self.sends = self.sends, []
            for send in acknowledged:
                self.dispatch.acknowledge(send)
            self.works.extend(self.dispatch.take(self.now, 10))
            # With a rate, the call of a record that was queued may count in this turn, and the next is due later.
            if not self.works and not acknowledged and self.dispatch.next_due() is None:
                break
            for bundle in self.works:
                for run in bundle:
                    if not run.done:
                        outcomes = [DONE] * (len(run.records) - run.collected)
                        self.sends.extend(self.dispatch.report([(run, outcomes, True)], now=self.now).sends)
                self.dispatch.release()
            self.works.clear()
        for epoch in self.dispatch.epochs:
            assert epoch.drained
            assert epoch.lanes.in_progress == 0
            if epoch.tp not in self.draining:
                assert epoch.tracker.unfinished == 0
                assert not epoch.lanes.by_key, "idle lanes are forgotten"
