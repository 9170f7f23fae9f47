"""The dispatcher's rules, driven through random histories and named cases."""

from collections import defaultdict

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from penstock import Record, Retry
from penstock.core.dispatch import FULL_SECONDS, RUN_LIMIT, Dispatch, Run, Send
from penstock.core.outcome import DONE, Done, Failed, Outcome, Outgoing, Skipped
from penstock.core.record import TopicPartition

PLACES: list[TopicPartition] = [("t", 0), ("t", 1), ("t", 2)]
OUTPUT = Done(Outgoing("out", None, b"x"))
FAILURE = Failed("OSError", "away")
POISON = Failed("Reject", "never", final=True)


def letter_of(record: Record, _failure: Failed) -> Outgoing:
    return Outgoing("dlq", record.key, record.value)


def make_dispatch(
    *, concurrency: int = 2, max_in_flight: int = 40, attempts: int = 3, dead_letter: bool = True
) -> Dispatch:
    return Dispatch(
        concurrency=concurrency,
        max_in_flight=max_in_flight,
        retry=Retry(attempts=attempts, first="1s", jitter=0),
        dead_letter_of=letter_of if dead_letter else None,
        random=lambda: 0.5,
    )


def records(place: TopicPartition, first: int, count: int) -> list[Record]:
    return [Record(*place, offset, None, b"") for offset in range(first, first + count)]


class DispatchMachine(RuleBasedStateMachine):
    """Partitions come and go while records are fetched, attempted, retried, sent and acknowledged in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.dispatch = make_dispatch()
        self.now = 0.0
        self.fetch_at: dict[TopicPartition, int] = {}  # where the fetcher of each owned partition stands
        self.delivered = 0
        self.unfinished: dict[TopicPartition, set[int]] = defaultdict(set)
        self.committed: dict[TopicPartition, int] = defaultdict(int)
        self.runs: list[Run] = []
        self.draining: set[TopicPartition] = set()
        self.sends: list[Send] = []
        self.started: dict[tuple[TopicPartition, int], int] = {}  # highest first attempt by partition and epoch

    # Ownership.

    @rule(place=st.sampled_from(PLACES))
    def assign(self, place: TopicPartition) -> None:
        if place not in self.fetch_at:
            self.dispatch.assign(place, self.committed[place])
            self.fetch_at[place] = self.committed[place]
            self.unfinished[place] = set()

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
        point = self.dispatch.commits().get(place)
        if point is not None:
            self.committed[place] = point
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
        self.dispatch.deliver(batch)
        self.delivered += count
        self.fetch_at[place] += count
        if epoch.dispatching:
            self.unfinished[place].update(record.offset for record in batch)

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

    @rule()
    def take(self) -> None:
        for run in self.dispatch.take(self.now):
            assert run.epoch.place not in self.draining
            assert run.epoch in self.dispatch.epochs
            offsets = [record.offset for record in run.records]
            assert offsets == sorted(offsets)
            assert len(offsets) <= RUN_LIMIT
            lane = (run.epoch.place, run.epoch.number)
            assert not any(other.lane is run.lane for other in self.runs), "a lane is with one worker at a time"
            # Nothing runs before what precedes it: only a retry may come back to an offset that started before.
            first_time = [r.offset for r in run.records if r.attempt == 1]
            assert not first_time or first_time[0] >= self.started.get(lane, -1)
            self.runs.append(run)

    @precondition(lambda self: self.runs)
    @rule(data=st.data(), outcomes=st.lists(st.sampled_from([DONE, OUTPUT, Skipped(), POISON, FAILURE]), max_size=6))
    def report(self, data: st.DataObject, outcomes: list[Outcome]) -> None:
        run = data.draw(st.sampled_from(self.runs))
        outcomes = outcomes[: len(run.records)]
        if FAILURE in outcomes:  # a worker stops there
            outcomes = outcomes[: outcomes.index(FAILURE) + 1]
        last = FAILURE in outcomes or len(outcomes) == len(run.records) or data.draw(st.booleans())
        done, place = run.records[: len(outcomes)], run.epoch.place
        current = run.epoch in self.dispatch.epochs
        consequences = self.dispatch.report(run, outcomes, last=last, now=self.now)
        if last:
            self.runs.remove(run)
        if not current:
            assert not consequences.sends
            assert not consequences.finished
            return
        if done:
            self.started[place, run.epoch.number] = done[-1].offset
        for record, outcome in zip(done, outcomes, strict=True):
            if outcome in (DONE, Skipped()):
                self.unfinished[place].discard(record.offset)
        self.sends.extend(consequences.sends)

    @precondition(lambda self: self.sends)
    @rule(data=st.data())
    def broker_acknowledges(self, data: st.DataObject) -> None:
        send = self.sends.pop(data.draw(st.integers(0, len(self.sends) - 1)))
        current = send.epoch in self.dispatch.epochs
        assert self.dispatch.acknowledge(send) == current
        if current:
            self.unfinished[send.epoch.place].discard(send.record.offset)

    @rule()
    def commit(self) -> None:
        for place, offset in self.dispatch.commits().items():
            assert offset > self.committed[place], "a group's offset never goes back"
            self.committed[place] = offset
            self.dispatch.committed(place, offset)

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
        assert len(self.runs) <= 2
        in_flight = sum(len(self.unfinished[epoch.place]) for epoch in self.dispatch.epochs)
        assert self.delivered - self.dispatch.settled == in_flight
        assert in_flight <= 40

    def teardown(self) -> None:
        """Whatever happened, what is owned can be finished: nothing is stuck, nothing is forgotten."""
        for _ in range(1_000):
            self.now += 60
            self.dispatch.balance(self.now)
            self.runs.extend(self.dispatch.take(self.now))
            if not self.runs:
                break
            for run in self.runs:
                self.sends.extend(self.dispatch.report(run, [DONE] * len(run.records), last=True, now=self.now).sends)
            self.runs.clear()
        for send in self.sends:
            self.dispatch.acknowledge(send)
        for epoch in self.dispatch.epochs:
            if epoch.place not in self.draining:
                assert epoch.tracker.unfinished == 0


TestDispatch = DispatchMachine.TestCase
TestDispatch.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)


def test_a_retry_holds_its_own_lane_and_no_other() -> None:
    dispatch = make_dispatch(concurrency=8)
    for place in PLACES[:2]:
        dispatch.assign(place, 0)
        dispatch.deliver(records(place, 0, 2))
    failing, other = dispatch.take(0.0)
    consequences = dispatch.report(failing, [FAILURE], last=True, now=0.0)
    assert consequences.retried is not None
    dispatch.report(other, [DONE, DONE], last=True, now=0.0)
    dispatch.deliver(records(other.epoch.place, 2, 1))
    assert [run.epoch for run in dispatch.take(0.5)] == [other.epoch]
    assert dispatch.next_retry() == 1.0
    (again,) = dispatch.take(1.0)
    assert [(record.offset, record.attempt) for record in again.records] == [(0, 2), (1, 1)]
    assert dispatch.next_retry() is None


def test_a_dead_letter_counts_only_once_the_broker_has_it() -> None:
    dispatch = make_dispatch()
    epoch = dispatch.assign(("t", 0), 0)
    dispatch.deliver(records(("t", 0), 0, 2))
    (run,) = dispatch.take(0.0)
    consequences = dispatch.report(run, [POISON, DONE], last=True, now=0.0)
    (send,) = consequences.sends
    assert send.outgoing.topic == "dlq"
    assert send.failure == POISON
    assert dispatch.commits() == {}
    assert not epoch.drained
    assert dispatch.acknowledge(send)
    assert dispatch.commits() == {("t", 0): 2}
    assert epoch.drained


def test_without_a_dead_letter_topic_the_last_attempt_halts_and_the_commit_point_stays() -> None:
    dispatch = make_dispatch(attempts=1, dead_letter=False)
    dispatch.assign(("t", 0), 0)
    dispatch.deliver(records(("t", 0), 0, 3))
    (run,) = dispatch.take(0.0)
    consequences = dispatch.report(run, [DONE, FAILURE], last=True, now=0.0)
    assert consequences.halted is not None
    assert consequences.halted[0].offset == 1
    assert dispatch.commits() == {("t", 0): 1}


def test_an_output_that_the_broker_never_takes_fails_its_record() -> None:
    dispatch = make_dispatch()
    dispatch.assign(("t", 0), 0)
    dispatch.deliver(records(("t", 0), 0, 1))
    (run,) = dispatch.take(0.0)
    (output,) = dispatch.report(run, [OUTPUT], last=True, now=0.0).sends
    (letter,) = dispatch.refuse(output, POISON).sends
    assert letter.failure == POISON
    dispatch.acknowledge(letter)
    assert dispatch.commits() == {("t", 0): 1}


def test_late_results_of_a_closed_epoch_do_not_touch_the_next_one() -> None:
    dispatch = make_dispatch()
    dispatch.assign(("t", 0), 0)
    dispatch.deliver(records(("t", 0), 0, 2))
    (run,) = dispatch.take(0.0)
    (output,) = dispatch.report(run, [OUTPUT], last=False, now=0.0).sends
    dispatch.close([("t", 0)])
    fresh = dispatch.assign(("t", 0), 0)
    dispatch.deliver(records(("t", 0), 0, 2))
    late = dispatch.report(run, [DONE], last=True, now=0.0)
    assert not late.finished
    assert not dispatch.acknowledge(output)
    assert not dispatch.refuse(output, POISON).sends
    assert fresh.tracker.commit_point == 0
    (again,) = dispatch.take(0.0)
    assert [record.offset for record in again.records] == [0, 1]


def test_a_stuck_partition_gives_back_what_the_others_need() -> None:
    dispatch = make_dispatch(max_in_flight=40, concurrency=8)
    stuck, free = dispatch.assign(("t", 0), 0), dispatch.assign(("t", 1), 0)
    dispatch.deliver(records(("t", 0), 0, 40))
    (run,) = dispatch.take(0.0)
    dispatch.report(run, [FAILURE], last=True, now=0.0)
    assert dispatch.balance(0.0) == ([], [])
    ((pause,), _) = dispatch.balance(FULL_SECONDS)
    assert (pause.epoch, pause.rewind_to) == (stuck, 20)
    assert stuck.tracker.unfinished == 20
    # What was on its way from before the rewind is dropped, or offsets 20 to 29 would be taken for a gap.
    dispatch.deliver(records(("t", 0), 30, 5))
    assert stuck.tracker.unfinished == 20
    dispatch.deliver(records(("t", 1), 0, 10))
    assert [run.epoch for run in dispatch.take(0.5)] == [free]
    dispatch.rewound(("t", 0))
    (retry,) = dispatch.take(1.0)
    dispatch.report(retry, [DONE] * 20, last=True, now=1.0)
    assert dispatch.balance(1.0) == ([], [stuck])
    dispatch.deliver(records(("t", 0), 20, 1))
    assert stuck.tracker.commit_point == 20


def test_caught_up_means_finished_up_to_the_ends_seen() -> None:
    dispatch = make_dispatch()
    dispatch.assign(("t", 0), 0)
    dispatch.assign(("t", 1), None)
    ends = {("t", 0): 2, ("t", 1): 0}
    assert not dispatch.caught_up(ends)
    dispatch.reach(("t", 1), 0)
    dispatch.deliver(records(("t", 0), 0, 2))
    (run,) = dispatch.take(0.0)
    assert not dispatch.caught_up(ends)
    dispatch.report(run, [DONE, DONE], last=True, now=0.0)
    assert dispatch.caught_up(ends)


def test_what_comes_for_partitions_that_are_gone_is_dropped() -> None:
    dispatch = make_dispatch()
    dispatch.deliver(records(("t", 0), 0, 3))
    dispatch.reach(("t", 0), 5)
    dispatch.committed(("t", 0), 5)
    dispatch.rewound(("t", 0))
    assert dispatch.settled == 3
    assert dispatch.take(0.0) == []
    assert dispatch.commits() == {}
