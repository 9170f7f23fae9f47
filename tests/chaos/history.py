"""The history of a run: the events of each process, the faults, and what the broker has committed."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

TopicPartition = tuple[str, int]
"""A topic and a partition."""

# On a busy machine, this much time may pass between the broker's answer and the line in the file.
REPORT_SECONDS = 2.0

SETTLED = frozenset({"finished", "skipped", "dead_lettered"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One event of one partition. ``index`` counts those of its process, in the order they were written."""

    kind: str
    ts: float
    process: str
    index: int
    member: str
    tp: TopicPartition
    offset: int = -1
    epoch: int = -1
    key: str | None = None
    attempt: int = 1
    reason: str = ""

    @property
    def record(self) -> tuple[TopicPartition, int]:
        return self.tp, self.offset

    def __str__(self) -> str:
        topic, partition = self.tp
        where = f"{topic}[{partition}]" + (f"@{self.offset}" if self.offset >= 0 else "")
        return f"{self.kind} {where} of {self.process} in epoch {self.epoch} at {self.ts:.6f}"


@dataclass(frozen=True, slots=True)
class Note:
    """A handler wrote that it began or finished a record."""

    kind: Literal["began", "ended"]
    record: tuple[TopicPartition, int]
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault of a process: ``kill`` is -9, ``freeze`` is SIGSTOP up to ``until``, ``leave`` is SIGTERM."""

    kind: Literal["kill", "freeze", "leave", "join"]
    process: str
    ts: float
    until: float = 0.0


@dataclass(slots=True, eq=False)
class Epoch:
    """One ownership of one partition, as its member reported it."""

    process: str
    member: str
    tp: TopicPartition
    number: int
    assigned: Entry
    entries: list[Entry] = field(default_factory=list)
    """All that followed of this partition, up to the member's next epoch of it."""

    @property
    def end(self) -> Entry | None:
        return next((entry for entry in self.entries if entry.kind in {"revoked", "lost"}), None)

    def of(self, *kinds: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.kind in kinds]


@dataclass(frozen=True, kw_only=True)
class History:
    """All data for the checker.

    Attributes:
        files: The events of each process that name a partition, in the order they were written.
        produced: Every record that the broker acknowledged, with its key.
        ends: Where each partition ends.
        committed: The committed offsets of the group at the end.
        faults: The faults of the processes.
        observed: The committed offsets that the broker reported from time to time during the run.
        handler_logs: What the handlers of each process wrote, independent of the engine.
    """

    files: Mapping[str, Sequence[Entry]]
    produced: Mapping[tuple[TopicPartition, int], str | None]
    ends: Mapping[TopicPartition, int]
    committed: Mapping[TopicPartition, int]
    faults: Sequence[Fault] = ()
    observed: Sequence[tuple[float, Mapping[TopicPartition, int]]] = ()
    handler_logs: Mapping[str, Sequence["Note"]] = field(default_factory=dict)

    @cached_property
    def epochs(self) -> list[Epoch]:
        return [epoch for entries in self.files.values() for epoch in _epochs(entries)]

    @cached_property
    def by_time(self) -> list[Entry]:
        """The entries of all files, by time.

        Processes of one machine share its clock; entries of one process keep their order.
        """
        return sorted((entry for entries in self.files.values() for entry in entries), key=lambda entry: entry.ts)

    def was_hit(self, process: str, *, since: float, before: float) -> bool:
        """Whether this process was killed or frozen between these moments."""
        hits = (hit for hit in self.hits if hit.process == process)
        return any(hit.ts <= before and (hit.kind == "kill" or hit.until >= since) for hit in hits)

    def earliest(self, entry: Entry) -> float:
        """The earliest time of the event. A frozen process may report earlier events only after the freeze."""
        for fault in self.hits:
            if fault.process == entry.process and fault.ts <= entry.ts <= fault.until + REPORT_SECONDS:
                return fault.ts - REPORT_SECONDS
        return entry.ts - REPORT_SECONDS

    @cached_property
    def cut_short(self) -> set[tuple[str, int]]:
        """Dispatches that were decided before a freeze, reported directly after it, and that no handler began.

        With them come reports of records that had ended before the freeze; without a handler log, these end the list,
        because they could be records that a handler ran after the freeze.
        """
        cut: set[tuple[str, int]] = set()
        for fault in self.faults:
            if fault.kind == "freeze":
                began = self._began.get(fault.process)
                late = {"dispatched"} if began is None else {"dispatched", *SETTLED}
                awake = (entry for entry in self.files.get(fault.process, ()) if entry.ts > fault.until)
                for entry in awake:
                    if entry.kind not in late:
                        break
                    if entry.kind == "dispatched" and entry.record not in (began or ()):
                        cut.add((entry.process, entry.index))
        return cut

    @cached_property
    def _began(self) -> dict[str, set[tuple[TopicPartition, int]]]:
        """For each process with a handler log, the records that a handler began there."""
        return {
            process: {note.record for note in notes if note.kind == "began"}
            for process, notes in self.handler_logs.items()
        }

    @cached_property
    def hits(self) -> list[Fault]:
        return [fault for fault in self.faults if fault.kind in {"kill", "freeze"}]


def _epochs(entries: Iterable[Entry]) -> list[Epoch]:
    epochs: list[Epoch] = []
    current: dict[tuple[str, TopicPartition], Epoch] = {}
    for entry in entries:
        owner = entry.member, entry.tp
        if entry.kind == "assigned":
            current[owner] = Epoch(entry.process, entry.member, entry.tp, entry.epoch, entry)
            epochs.append(current[owner])
        elif owner in current:
            current[owner].entries.append(entry)
    return epochs


def read_events(process: str, lines: Iterable[str]) -> list[Entry]:
    """The events that name a partition. A process that was killed may leave half a line at the end."""
    entries: list[Entry] = []
    for line in lines:
        if not line.endswith("\n"):
            break
        event = json.loads(line)
        if "partition" in event:
            entries.append(_entry(process, len(entries), event))
    return entries


def _entry(process: str, index: int, event: Mapping[str, Any]) -> Entry:
    # Absent and null both mean: unknown to the writer.
    known = {
        name: event[name] for name in ("offset", "epoch", "attempt", "key", "reason") if event.get(name) is not None
    }
    tp = event["topic"], event["partition"]
    member = event.get("member") or process
    return Entry(kind=event["event"], ts=event["ts"], process=process, index=index, member=member, tp=tp, **known)
