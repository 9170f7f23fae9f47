"""A breaker that pauses: random outages, with the dispatcher's rules and workers that take their time."""

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dispatch_helpers import make_dispatch
from penstock import Breaker, Retry
from penstock.core.failures.breaker import Circuit
from penstock.core.failures.outcome import DONE, Failed, Outcome, Reject, failed
from penstock.core.failures.pausing_circuit import PausingCircuit, circuit_of
from penstock.core.records.record import Record
from penstock.core.scheduling.dispatch import Dispatch
from penstock.core.scheduling.lanes import LaneRun, Order
from penstock.errors import ConfigError

TP = ("orders", 0)
PROBE = 4.0
TICK = 0.05
NAMED = Breaker(then="pause", probe=PROBE, on=(ConnectionError,))
RETRY = Retry(attempts=2, first=0.2, jitter=0)


@dataclass
class Run:
    """Runs records against a dependency that is down at times; ``poison`` records always fail as if it were."""

    down: list[tuple[float, float]]
    poison: set[int] = field(default_factory=set)
    bad: set[int] = field(default_factory=set)  # fail because of what they contain
    breaker: Breaker = NAMED
    order: Order = "key"
    workers: int = 4
    takes: float = 0.1
    now: float = 0.0
    letters: list[tuple[int, float]] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    began_while_open: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.dispatch: Dispatch = make_dispatch(
            order=self.order, concurrency=self.workers, max_in_flight=1_000, breaker=self.breaker
        )
        circuit = self.dispatch._pausing
        assert circuit is not None
        self.circuit = circuit
        self.dispatch.assign(TP, 0)
        self.busy: list[tuple[float, float, LaneRun]] = []

    def is_down(self, at: float) -> bool:
        return any(start <= at < end for start, end in self.down)

    def outcome(self, record: Record, began: float) -> Outcome:
        if record.offset in self.bad:
            return failed(Reject("never"), breaker=self.breaker)
        if record.offset in self.poison or self.is_down(began):
            # What began before an outage succeeds in it.
            return failed(ConnectionError("down"), RETRY, breaker=self.breaker)
        return DONE

    def until(self, end: float) -> None:
        while self.now < end:
            self.now += TICK
            ended = [each for each in self.busy if each[0] <= self.now]
            self.busy = [each for each in self.busy if each[0] > self.now]
            for _, began, run in ended:
                self.dispatch.release()
                outcome = self.outcome(run.records[0], began)
                if outcome is DONE:
                    self.circuit.worked(began, self.now)
                effects = self.dispatch.report([(run, [outcome], True)], self.now)
                assert effects.halted is None
                for send in effects.sends:
                    self.letters.append((send.tried.offset, self.now))
                    self.dispatch.acknowledge(send)
                self.done += [record.offset for _, records in effects.finished for record in records]
            was_open = self.circuit.is_open
            for bundle in self.dispatch.take(self.now, 1):
                if was_open:
                    self.began_while_open.append(self.now)
                self.busy.append((self.now + self.takes, self.now, bundle[0]))


def keyed(count: int, keys: int, first: int = 0) -> list[Record]:
    return [Record(*TP, offset, b"%d" % (offset % keys), b"") for offset in range(first, first + count)]


@st.composite
def outages(draw: st.DrawFn) -> list[tuple[float, float]]:
    at, found = 0.0, []
    for _ in range(draw(st.integers(0, 3))):
        start = at + draw(st.floats(3, 10))
        at = start + draw(st.floats(3, 12))
        found.append((start, at))
    return found


@settings(max_examples=60, deadline=None)
@given(
    down=outages(),
    poison=st.sets(st.integers(0, 199), max_size=4),
    bad=st.sets(st.integers(0, 199), max_size=4),
    keys=st.integers(2, 12),
    workers=st.integers(1, 6),
    order=st.sampled_from(["key", "none"]),
)
@example(down=[(0.0, 9.0)], poison=set(), bad=set(), keys=5, workers=3, order="key")
@example(down=[(3.0, 9.0), (12.5, 18.0)], poison={3}, bad={4, 5}, keys=2, workers=2, order="key")
def test_nothing_is_dead_lettered_while_the_dependency_is_down_and_all_is_finished_after_it(
    down: list[tuple[float, float]], poison: set[int], bad: set[int], keys: int, workers: int, order: Order
) -> None:
    # If the first records of all keys always fail, nothing shows that the dependency works.
    poison = {offset for offset in poison if offset % keys == 0}
    run = Run(down, poison, bad - poison, order=order, workers=workers)
    run.dispatch.deliver(TP, keyed(200, keys))
    end, sent = max((end for _, end in down), default=0.0), 200
    while run.now < end + 150 and len({*run.done, *(offset for offset, _ in run.letters)} & {*range(200)}) < 200:
        run.dispatch.deliver(TP, [Record(*TP, sent, b"more", b"")])
        sent += 1
        run.until(run.now + 1.0)
    assert {offset for offset, _ in run.letters} <= poison | run.bad
    ended = sorted([*run.done, *(offset for offset, _ in run.letters)])
    assert [offset for offset in ended if offset < 200] == list(range(200)), "each ends once"
    if order == "key":
        by_key = defaultdict(list)
        for offset in [each for each in run.done if each < 200]:
            by_key[offset % keys].append(offset)
        assert all(offsets == sorted(offsets) for offsets in by_key.values())


def test_while_it_is_open_one_record_is_tried_every_probe_and_a_success_lets_all_continue() -> None:
    run = Run([(0.0, 30.0)])
    run.dispatch.deliver(TP, keyed(40, 20))
    run.until(29.0)
    assert run.circuit.is_open
    tried = run.began_while_open
    assert len(tried) in {6, 7}
    assert all(later - earlier >= PROBE for earlier, later in pairwise(tried))
    run.until(30.0 + PROBE + 2)
    assert sorted(run.done) == list(range(40))
    assert run.letters == []


def test_each_try_takes_another_record_so_one_that_always_fails_holds_up_nothing() -> None:
    run = Run([(0.0, 6.0)], poison={0}, workers=2)
    run.dispatch.deliver(TP, keyed(10, 10))
    run.until(40.0)
    assert sorted(run.done) == list(range(1, 10))
    assert [offset for offset, _ in run.letters] == [0]


def test_a_bad_record_among_good_ones_becomes_a_dead_letter_and_pauses_nothing() -> None:
    run = Run([], poison={5}, bad={7})
    run.dispatch.deliver(TP, keyed(200, 20))
    run.until(8.0)
    assert sorted(offset for offset, _ in run.letters) == [5, 7]
    assert run.began_while_open == []


def test_if_every_exception_counts_one_record_alone_does_not_open_it() -> None:
    run = Run([], poison={0}, breaker=Breaker(then="pause", probe=PROBE), order="partition")
    run.dispatch.deliver(TP, keyed(1, 1))
    run.until(5.0)
    assert [offset for offset, _ in run.letters] == [0]
    named = Run([], poison={0}, order="partition")
    named.dispatch.deliver(TP, keyed(1, 1))
    named.until(5.0)
    assert named.letters == []
    assert named.circuit.is_open


def test_a_share_of_dead_letters_opens_it_too() -> None:
    """Some succeed, so each record that fails is to blame; but nearly all of them do."""
    breaker = Breaker(share=0.5, window=8, then="pause", probe=PROBE, on=(ConnectionError,))
    run = Run([], poison={offset for offset in range(100) if offset % 20}, breaker=breaker)
    run.dispatch.deliver(TP, keyed(100, 100))
    run.until(20.0)
    assert run.began_while_open, "it was open at times"


def test_it_survives_a_revoke_while_it_is_open() -> None:
    run = Run([(0.0, 10.0)])
    run.dispatch.deliver(TP, keyed(10, 5))
    run.until(6.0)
    assert run.circuit.is_open
    run.dispatch.stop_dispatching([TP])
    run.until(7.0)
    assert all(epoch.drained for epoch in run.dispatch.epochs), "a stop waits for nothing"
    run.dispatch.close([TP])
    run.dispatch.assign(TP, 0)
    run.dispatch.deliver(TP, keyed(10, 5))
    run.until(20.0)
    assert sorted(run.done) == list(range(10))


def test_nothing_is_due_before_the_next_try() -> None:
    run = Run([(0.0, 100.0)])
    run.dispatch.deliver(TP, keyed(10, 10))
    run.until(3.0)
    assert run.circuit.is_open
    due = run.dispatch.next_due()
    assert due is not None
    assert due == run.circuit.probe_at > run.now


def test_a_success_that_began_before_the_outage_neither_closes_it_nor_blames_a_record() -> None:
    circuit = PausingCircuit(NAMED)
    assert circuit.withholds("a", None, 10.0, reason="down") == 1.0
    circuit.worked(9.9, 10.5)
    assert circuit.withholds("a", 10.0, 11.0, reason="down") == 0.0
    assert circuit.is_open
    circuit.worked(10.9, 11.2)
    assert circuit.is_open
    circuit.worked(15.0, 15.1)
    assert circuit.probe_at == inf, "it is closed"
    assert circuit.withholds("a", 11.0, 15.2, reason="down") == 1.0, "what it did before says nothing now"


@pytest.mark.parametrize(
    ("wrong", "option"),
    [
        ({"then": "wait"}, "then"),
        ({"probe": "soon"}, "probe"),
        ({"probe": 0}, "probe"),
        ({"on": (1,)}, "on"),
        ({"on": "ConnectionError"}, "on"),
    ],
)
def test_options_that_cannot_work_are_refused(wrong: dict[str, Any], option: str) -> None:
    with pytest.raises(ConfigError, match=f"Breaker.{option}"):
        Breaker(**wrong)


def test_a_single_exception_class_is_a_tuple_of_one() -> None:
    breaker = Breaker(on=ConnectionError)  # type: ignore[arg-type]
    assert breaker.on == (ConnectionError,)
    assert breaker.counts(ConnectionResetError())
    assert not breaker.counts(ValueError())
    assert type(circuit_of(breaker)) is Circuit
    assert circuit_of(None) is None


def test_a_breaker_that_stops_counts_only_the_errors_that_it_names() -> None:
    dispatch = make_dispatch(order="none", concurrency=20, breaker=Breaker(share=0.5, window=2, on=(OSError,)))
    dispatch.assign(TP, 0)
    dispatch.deliver(TP, keyed(10, 10))
    runs = [bundle[0] for bundle in dispatch.take(0.0, 1)]
    other = Failed("ValueError", "no", final=True, trips=False)
    named = Failed("OSError", "down", final=True)
    effects = dispatch.report([(run, [other], True) for run in runs[:4]], now=0.0)
    assert effects.halted is None
    effects = dispatch.report([(run, [named], True) for run in runs[4:6]], now=0.0)
    assert effects.halted is not None, "one of the last two was a failure that it names"
    assert effects.halted[0].offset == 5
