"""Reads, selects and counts dead letters of any style."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.core.failures.dead_letter_headers import DeadLetterInfo, read_dead_letter_info
from penstock.core.filters.expression import Expression
from penstock.core.records.record import Record, TopicPartition
from penstock.core.text.readable_bytes import readable
from penstock.errors import TopicError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.admin.log_bounds import Bounds, Found, Logs
from penstock.kafka.read.read_records import read_span
from penstock.ops.record_view import RecordView
from penstock.ops.topic_facts import require_bounds

_LOOKS_DEAD = ("dlq", "dlt", "dead", "parked")


@dataclass(frozen=True)
class Letter:
    record: Record
    note: DeadLetterInfo

    @property
    def died_at(self) -> float:
        """The time of the failure, in seconds since 1970."""
        failed = self.note.failed_at_ms
        return (self.record.timestamp_ms if failed is None else failed) / 1000

    def values(self, seen: RecordView | None = None) -> dict[str, Any]:
        """The names that a ``--where`` expression can use."""
        return {**record_values(self.record, seen), **note_values(self.note)}


def record_values(record: Record, seen: RecordView | None = None) -> dict[str, Any]:
    """The names of a record for ``--where``: decoded as in ``seen``, or without it by what the bytes look like."""
    return {
        "key": readable(record.key) if seen is None else seen.key,
        "value": readable(record.value) if seen is None else seen.value,
        "headers": {name: readable(value) for name, value in record.headers},
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms / 1000,
    }


def note_values(note: DeadLetterInfo) -> dict[str, Any]:
    return {"reason": note.reason, "message": note.message, "source": note.topic, "group": note.group}


@dataclass(frozen=True)
class Choice:
    """A filter of dead letters; all given conditions must match. Times are in seconds since 1970."""

    reason: str = ""
    source: str = ""
    group: str = ""
    key: bytes | None = None
    since: float | None = None
    until: float | None = None
    where: Expression | None = None
    at: frozenset[tuple[int, int]] = field(default_factory=frozenset)
    """Partitions and offsets in the dead-letter topic."""
    values: Callable[[Letter], Mapping[str, Any]] = Letter.values
    """Makes the names that ``where`` can use."""

    def fits(self, letter: Letter) -> bool:
        note, record = letter.note, letter.record
        return (
            (not self.at or (record.partition, record.offset) in self.at)
            and (not self.reason or _mentions(note, self.reason))
            and (not self.source or note.topic == self.source)
            and (not self.group or note.group == self.group)
            and (self.key is None or record.key == self.key)
            and (self.since is None or letter.died_at >= self.since)
            and (self.until is None or letter.died_at < self.until)
            and (self.where is None or self.where.matches(self.values(letter)))
        )


def _mentions(note: DeadLetterInfo, text: str) -> bool:
    wanted = text.lower()
    return wanted in note.error_type.lower() or wanted in note.message.lower() or wanted == note.reason.lower()


def bounds_of(cluster: Cluster, topic: str) -> dict[TopicPartition, Bounds]:
    return require_bounds(cluster, cluster.topic_partitions([topic]))


def read_letters(
    cluster: Cluster, bounds: Mapping[TopicPartition, Bounds], *, starts: Mapping[TopicPartition, int] | None = None
) -> Iterator[Letter]:
    """Read the dead letters within these bounds, or from ``starts`` on."""
    begin = {tp: max(each.start, (starts or {}).get(tp, each.start)) for tp, each in bounds.items()}
    for record in read_span(cluster, begin, {tp: each.end for tp, each in bounds.items()}):
        yield Letter(record, read_dead_letter_info(record.headers))


def chosen_letters(cluster: Cluster, topic: str, choice: Choice) -> Iterator[Letter]:
    """Read the dead letters that match. ``at`` and ``since`` also limit which part of the topic is read."""
    bounds = bounds_of(cluster, topic)
    starts = {tp: each.start for tp, each in bounds.items()}
    if choice.at:
        bounds = _around(bounds, choice.at, topic)
        starts = {tp: each.start for tp, each in bounds.items()}
    if choice.since is not None:
        starts |= _since(cluster, starts, choice.since)
    for letter in read_letters(cluster, bounds, starts=starts):
        if choice.fits(letter):
            yield letter


def _around(
    bounds: Mapping[TopicPartition, Bounds], wanted: Collection[tuple[int, int]], topic: str
) -> dict[TopicPartition, Bounds]:
    """Return the smallest bounds that contain these partitions and offsets."""
    found: dict[TopicPartition, Bounds] = {}
    for partition in {partition for partition, _ in wanted}:
        if (topic, partition) not in bounds:
            raise TopicError(
                f"Topic {topic!r} has no partition {partition}.",
                hint=f"It has {len(bounds)}, from 0 to {len(bounds) - 1}.",
            )
        offsets = [offset for number, offset in wanted if number == partition]
        whole = bounds[topic, partition]
        found[topic, partition] = Bounds(max(whole.start, min(offsets)), min(whole.end, max(offsets) + 1))
    return found


def _since(cluster: Cluster, starts: Mapping[TopicPartition, int], since: float) -> dict[TopicPartition, int]:
    """Return where to start reading. A dead letter is written soon after its failure; a minute is added for delays."""
    found = Logs(cluster).at_times((tp, since - 60) for tp in starts)
    return {
        tp: max(starts[tp], answer.offset)
        for (tp, _), answer in found.items()
        if isinstance(answer, Found) and answer.offset is not None
    }


@dataclass
class LetterCount:
    """The count of dead letters with the same reason, source, group or hour."""

    count: int = 0
    first: float = float("inf")
    last: float = 0.0
    message: str = ""

    def add(self, letter: Letter) -> None:
        self.count += 1
        self.first, self.last = min(self.first, letter.died_at), max(self.last, letter.died_at)
        self.message = self.message or letter.note.message


def count_letters(letters: Iterator[Letter], *, by: str) -> dict[tuple[str, ...], LetterCount]:
    """Count dead letters by reason, source, group or hour, the largest count first."""
    found: dict[tuple[str, ...], LetterCount] = {}
    for letter in letters:
        found.setdefault(_common(letter, by), LetterCount()).add(letter)
    return dict(sorted(found.items(), key=lambda each: -each[1].count))


def _common(letter: Letter, by: str) -> tuple[str, ...]:
    note = letter.note
    if by == "hour":
        return (str(int(letter.died_at // 3600 * 3600)),)
    if by == "source":
        return (note.topic,)
    if by == "group":
        return (note.group,)
    return note.topic, note.group, note.reason


def dead_letter_topics(cluster: Cluster) -> dict[str, int]:
    """Return the topics whose names look like dead-letter topics, each with an upper bound of its records."""
    existing = cluster.topics()
    if not existing:
        cluster.require_sight("topic")
    names = [name for name in existing if looks_dead(name)]
    found = {}
    for name in names:
        bounds = Logs(cluster).bounds(cluster.topic_partitions([name])).values()
        found[name] = sum(each.end - each.start for each in bounds if isinstance(each, Bounds))
    return found


def looks_dead(topic: str) -> bool:
    words = topic.lower().replace("-", ".").replace("_", ".").split(".")
    ends_dead = words[-1] in _LOOKS_DEAD or words[-2:] in (["dead", "letter"], ["dead", "letters"])
    return ends_dead and not topic.startswith("__")
