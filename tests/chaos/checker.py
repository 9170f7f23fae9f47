"""Checks that a history keeps what DESIGN.md promises. Each rule is a function; ``check`` calls them all.

The rules of order are for handlers that write nothing. After an output or a dead letter, the next record of the key may
start before the broker has acknowledged the write.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from chaos.handler_log import (
    a_key_runs_one_record_at_a_time,
    every_record_was_handled,
    what_is_finished_was_handled_there,
)
from chaos.history import REPORT_SECONDS, SETTLED, Entry, Epoch, History, TopicPartition


@dataclass(frozen=True, slots=True)
class Violation:
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


Rule = Callable[[History], Iterator[str]]


def check(history: History) -> list[Violation]:
    """Every violation of every rule."""
    return [Violation(name, text) for name, rule in RULES.items() for text in rule(history)]


def report(violations: list[Violation], *, at_most: int = 5) -> str:
    """A report for people: the count of each broken rule, and a few examples."""
    lines = []
    for rule, count in Counter(violation.rule for violation in violations).items():
        lines.append(f"{rule}: {count:,} violations")
        examples = [violation.text for violation in violations if violation.rule == rule]
        lines += [f"  {text}" for text in examples[:at_most]]
        lines += [f"  and {count - at_most:,} more"] * (count > at_most)
    return "\n".join(lines) or "no violations"


# Nothing is lost.


def nothing_is_lost(history: History) -> Iterator[str]:
    settled = {entry.record for entry in history.by_time if entry.kind in SETTLED}
    for tp, offset in sorted(history.produced.keys() - settled):
        yield f"{_name(tp)}@{offset} was never finished, skipped or dead-lettered"


def the_group_reaches_the_end(history: History) -> Iterator[str]:
    for tp, end in sorted(history.ends.items()):
        if history.committed.get(tp, 0) != end:
            yield f"{_name(tp)} is committed up to {history.committed.get(tp)} and ends at {end}"


def commits_pass_nothing_unfinished(history: History) -> Iterator[str]:
    first = _first_settled(history)
    offsets: defaultdict[TopicPartition, list[int]] = defaultdict(list)
    for tp, offset in sorted(history.produced):
        offsets[tp].append(offset)
    # For each record, the time when it and all records before it in its partition had been settled.
    since = {
        tp: list(accumulate((first.get((tp, offset), float("inf")) for offset in known), max))
        for tp, known in offsets.items()
    }
    for entry in history.by_time:
        if entry.kind == "committed":
            below = bisect_left(offsets[entry.tp], entry.offset)
            if below and since[entry.tp][below - 1] > entry.ts:
                yield f"{entry}, and something below it was not finished then"


def _first_settled(history: History) -> dict[tuple[TopicPartition, int], float]:
    first: dict[tuple[TopicPartition, int], float] = {}
    for entry in history.by_time:
        if entry.kind in SETTLED:
            first.setdefault(entry.record, entry.ts)
    return first


# Commits never go back.


def commits_never_go_back(history: History) -> Iterator[str]:
    yield from _back_within_an_epoch(history)
    yield from _back_between_processes(history)
    for (_, before), (at, after) in pairwise(history.observed):
        for tp, offset in before.items():
            if after.get(tp, -1) < offset:
                yield f"{_name(tp)} went from {offset} to {after.get(tp)} on the broker at {at:.3f}"


def _back_within_an_epoch(history: History) -> Iterator[str]:
    for epoch in history.epochs:
        end, last = epoch.end, epoch.assigned
        for entry in epoch.of("committed"):
            # The last commit of an epoch is synchronous, so its answer may be reported before the answer of an earlier
            # one.
            both_after_the_end = end is not None and end.index < min(last.index, entry.index)
            if entry.offset < last.offset and not both_after_the_end:
                yield f"{entry} after {last}"
            last = entry


def _back_between_processes(history: History) -> Iterator[str]:
    """An event is reported shortly after it happened, so two events are in order only if no delay explains it."""
    reported: defaultdict[TopicPartition, list[Entry]] = defaultdict(list)
    for entry in history.by_time:
        if entry.kind not in {"committed", "assigned"} or entry.offset < 0:
            continue
        earliest = history.earliest(entry)
        # By time, so the first that is not surely before ends the search; commits are few.
        before = [other for other in reported[entry.tp] if other.ts < earliest]
        highest = max(before, key=lambda other: other.offset, default=None)
        if highest is not None and highest.offset > entry.offset:
            yield f"{entry} after {highest}"
        if entry.kind == "committed":
            reported[entry.tp].append(entry)


# A key keeps its order.


@dataclass(slots=True)
class _Key:
    """The state of one key in one epoch."""

    first: int = -1  # the highest offset that was dispatched for the first time
    settled: int = -1  # the highest offset that was settled
    attempts: dict[int, int] = field(default_factory=dict)
    open: set[int] = field(default_factory=set)  # handed to a worker and not settled
    last: int = -2  # index of the last dispatch


def keys_keep_their_order(history: History) -> Iterator[str]:
    for epoch in history.epochs:
        keys: defaultdict[str, _Key] = defaultdict(_Key)
        for entry in epoch.entries:
            name = entry.key if entry.key is not None else history.produced.get(entry.record)
            if name is None:
                continue
            key = keys[name]
            if entry.kind == "dispatched":
                yield from _on_dispatch(key, entry)
            elif entry.kind in SETTLED:
                key.open.discard(entry.offset)
                key.settled = max(key.settled, entry.offset)


def _on_dispatch(key: _Key, entry: Entry) -> Iterator[str]:
    again = key.attempts.get(entry.offset)
    if again is None and entry.offset < key.first:
        yield f"{entry} came for the first time after @{key.first} of its key"
    if entry.offset <= key.settled:
        yield f"{entry} came after @{key.settled} of its key was settled"
    if again is not None and entry.attempt < again:
        yield f"{entry} is attempt {entry.attempt} after attempt {again}"
    if entry.index != key.last + 1:  # records of one key in one work are reported together
        ahead = [offset for offset in key.open if offset < entry.offset]
        if ahead:
            yield f"{entry} while @{min(ahead)} of its key was in progress"
        key.open.clear()  # records that were not begun came back, and are reported again
    key.first = max(key.first, entry.offset)
    key.attempts[entry.offset] = entry.attempt
    key.open.add(entry.offset)
    key.last = entry.index


# The records of an epoch end with it.


def an_epoch_that_is_over_starts_nothing(history: History) -> Iterator[str]:
    for process, entries in history.files.items():
        going: dict[tuple[str, TopicPartition], int] = {}
        for entry in entries:
            owner = entry.member, entry.tp
            if entry.kind == "assigned":
                going[owner] = entry.epoch
            elif entry.kind in {"revoked", "lost"}:
                going.pop(owner, None)
            elif entry.kind == "dispatched" and going.get(owner) != entry.epoch:
                yield f"{entry}, and {process} had {going.get(owner, 'none')}"


def a_zombie_starts_nothing(history: History) -> Iterator[str]:
    """No member dispatches records of a partition after it was assigned to another member."""
    cut = history.cut_short
    taken: defaultdict[TopicPartition, list[Epoch]] = defaultdict(list)
    for epoch in history.epochs:
        taken[epoch.tp].append(epoch)
    for epoch in history.epochs:
        later = [
            other.assigned
            for other in taken[epoch.tp]
            if other.member != epoch.member and other.assigned.ts > epoch.assigned.ts
        ]
        takeover = min(later, key=lambda entry: entry.ts, default=None)
        if takeover is not None:
            for entry in epoch.of("dispatched"):
                if entry.ts > takeover.ts and (entry.process, entry.index) not in cut:
                    yield f"{entry} after {takeover}"


# Repeats.


def nothing_committed_is_repeated(history: History) -> Iterator[str]:
    """A record that was finished and committed is not dispatched again, whatever happened.

    A commit covers the records that were finished when the previous commit was answered. So a record is safe after the
    second commit after its end, and after the last commit of an epoch that ended cleanly.
    """
    safe: dict[tuple[TopicPartition, int], tuple[float, Epoch]] = {}
    for epoch in history.epochs:
        commits = epoch.of("committed")
        at_the_end = _safe_at_the_end(history, epoch)
        for entry in epoch.of(*SETTLED):
            after = commits[bisect_right(commits, entry.index, key=lambda commit: commit.index) :]
            at = after[1].ts if len(after) > 1 else at_the_end
            if at is not None:
                safe[entry.record] = min((at, epoch), safe.get(entry.record, (at, epoch)), key=lambda since: since[0])
    for entry in history.by_time:
        if (
            entry.kind == "dispatched"
            and entry.record in safe
            and (entry.process, entry.index) not in history.cut_short
        ):
            at, epoch = safe[entry.record]
            if at < entry.ts:
                yield f"{entry} after {epoch.process} had finished it, safe since {at:.6f}{_refusal(epoch)}"


def repeats_have_a_cause(history: History) -> Iterator[str]:
    """A finished record is dispatched again only if its process was killed or frozen since, or its epoch was lost."""
    done: defaultdict[tuple[TopicPartition, int], list[tuple[Entry, Epoch]]] = defaultdict(list)
    for epoch in history.epochs:
        for entry in epoch.of(*SETTLED):
            done[entry.record].append((entry, epoch))
    for epoch in history.epochs:
        for entry in epoch.of("dispatched"):
            unexplained = (
                before
                for before, by in done[entry.record]
                if before.ts < entry.ts and not (by is not epoch and _explains_a_repeat(history, by, before, entry))
            )
            before = next(unexplained, None)
            if before is not None and (entry.process, entry.index) not in history.cut_short:
                yield f"{entry} again, after {before}, whose epoch was neither killed, frozen nor lost"


def a_record_is_finished_once_in_an_epoch(history: History) -> Iterator[str]:
    for epoch in history.epochs:
        for offset, times in Counter(entry.offset for entry in epoch.of(*SETTLED)).items():
            if times > 1:
                yield f"{_name(epoch.tp)}@{offset} {times} times in epoch {epoch.number} of {epoch.process}"


def _refusal(epoch: Epoch) -> str:
    """A hint at the cause: the last commit of the ended epoch was refused."""
    end = epoch.end
    refused = [entry for entry in epoch.of("commit_failed") if end is not None and entry.index > end.index]
    return f"; a commit after its epoch's end was refused: {refused[0].reason}" if refused else ""


def _safe_at_the_end(history: History, epoch: Epoch) -> float | None:
    """The time of the last commit; None if the process was killed or frozen between the end and that commit."""
    end = epoch.end
    if end is None or end.kind == "lost":
        return None
    near = (fault for fault in history.hits if fault.process == epoch.process)
    return None if any(abs(fault.ts - end.ts) < REPORT_SECONDS for fault in near) else end.ts


def _explains_a_repeat(history: History, epoch: Epoch, done: Entry, again: Entry) -> bool:
    end = epoch.end
    if end is not None and end.kind == "lost":
        return True
    return history.was_hit(epoch.process, since=done.ts, before=again.ts)


def _name(tp: TopicPartition) -> str:
    return f"{tp[0]}[{tp[1]}]"


RULES: dict[str, Rule] = {
    "nothing is lost": nothing_is_lost,
    "the group reaches the end": the_group_reaches_the_end,
    "commits pass nothing unfinished": commits_pass_nothing_unfinished,
    "commits never go back": commits_never_go_back,
    "keys keep their order": keys_keep_their_order,
    "an epoch that is over starts nothing": an_epoch_that_is_over_starts_nothing,
    "a zombie starts nothing": a_zombie_starts_nothing,
    "nothing committed is repeated": nothing_committed_is_repeated,
    "repeats have a cause": repeats_have_a_cause,
    "a record is finished once in an epoch": a_record_is_finished_once_in_an_epoch,
    "every record was handled": every_record_was_handled,
    "what is finished was handled there": what_is_finished_was_handled_there,
    "a key runs one record at a time": a_key_runs_one_record_at_a_time,
}
