"""Replays dead letters: sends each back to its source topic once, even if the replay is interrupted.

A replay commits the offsets that it has replayed to a consumer group of its own (``ReplayRequest.memory``), as a commit
point and an offset map of the dead-letter topic. The copies and that commit are one transaction, so a kill at any time
leaves both or neither. The next replay fences the previous one before it reads the group's offsets.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.core.failures.dead_letter_headers import ReplayHeader, replay_count, without_failure_headers
from penstock.core.failures.outcome import ProducerRecord
from penstock.core.progress.offset_map import encode
from penstock.core.progress.tracker import Tracker
from penstock.core.records.record import Record, TopicPartition
from penstock.errors import ConfigError, PenstockError, StateError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.admin.consumer_groups import CommittedOffset, Groups
from penstock.kafka.admin.log_bounds import Bounds
from penstock.kafka.client.transactions import Transaction, group_metadata, row_of, transactional_id
from penstock.kafka.error_codes import FENCED
from penstock.kafka.errors import kafka_error
from penstock.ops.dead_letters import Choice, Letter, bounds_of, read_letters
from penstock.ops.group_lag import offset_map_of
from penstock.ops.replay_audit import Audit

PARKED = ".parked"
_BATCH = 200
_TIMEOUT = "transaction.timeout.ms"
# A batch takes moments. The open transaction of a killed process must not block readers for long.
_TRANSACTION_MS = 60_000

Edit = Callable[[Letter, ProducerRecord], ProducerRecord]


@dataclass(frozen=True)
class ReplayRequest:
    """``to`` is the topic for all; without it each goes to its source. ``again`` ignores what was replayed before."""

    topic: str
    choice: Choice
    to: str | None = None
    returns: int = 3
    rate: float | None = None
    again: bool = False

    @property
    def memory(self) -> str:
        """The group that holds the replayed offsets. It also names the transactional id."""
        return f"penstock-replay.{self.topic}" + (f".to.{self.to}" if self.to else "")


@dataclass
class ReplayPlan:
    """How many dead letters go to which topic, and how many are not replayed, by reason."""

    bounds: Mapping[TopicPartition, Bounds]
    going: Counter[tuple[str, str]] = field(default_factory=Counter)
    parked: int = 0
    no_source: int = 0
    replayed_before: int = 0
    not_selected: int = 0

    @property
    def total(self) -> int:
        return self.going.total() + self.parked


@dataclass
class Sent:
    """How many dead letters were replayed, and how many were parked."""

    replayed: int = 0
    parked: int = 0

    @property
    def total(self) -> int:
        return self.replayed + self.parked


class DeadLetterReplay:
    def __init__(self, cluster: Cluster, request: ReplayRequest) -> None:
        self._cluster = cluster
        self.request = request
        self._targets = set(cluster.topics())
        cluster.require_topics([request.topic, *([request.to] if request.to else [])])
        if request.to == request.topic:
            raise ConfigError(
                "Dead letters cannot be replayed into their own dead-letter topic.",
                hint="Name another topic with --to.",
            )

    def plan(self) -> ReplayPlan:
        """Count what a replay would do now. This changes nothing and does not fence a running replay."""
        bounds = bounds_of(self._cluster, self.request.topic)
        plan = ReplayPlan(bounds)
        memory = self._memory(bounds)
        starts = self._starts(bounds, memory)
        if not self.request.again:
            plan.replayed_before = sum(starts[tp] - each.start for tp, each in bounds.items())
        for letter in read_letters(self._cluster, bounds, starts=starts):
            tp = (letter.record.topic, letter.record.partition)
            if not self.request.again and not memory[tp].deliver([letter.record.offset]):
                plan.replayed_before += 1
            elif not self.request.choice.fits(letter):
                plan.not_selected += 1
            elif (target := self._target(letter)) is None:
                plan.no_source += 1
            elif self._is_parked(letter):
                plan.parked += 1
            else:
                plan.going[target, letter.note.reason] += 1
        return plan

    def replayed_before(self) -> Callable[[Record], bool]:
        """Return a test whether an earlier replay has sent a dead letter."""
        commits = Groups(self._cluster).committed([self.request.memory])[self.request.memory]
        if isinstance(commits, PenstockError):
            raise commits
        done = {tp: (commit.offset, offset_map_of(commit)) for tp, commit in commits.items()}

        def was_replayed(record: Record) -> bool:
            point, ranges = done.get((record.topic, record.partition), (0, []))
            return record.offset < point or any(first <= record.offset < after for first, after in ranges)

        return was_replayed

    def carry_out(
        self,
        plan: ReplayPlan,
        *,
        audit: Audit,
        stop: threading.Event,
        progress: Callable[[int], None],
        edit: Edit | None = None,
    ) -> Sent:
        """Send the dead letters in batches. When ``stop`` is set, end cleanly after the current batch."""
        if plan.parked:
            self._cluster.create_topics([self.request.topic + PARKED], partitions=len(plan.bounds))
        brokers, settings = self._cluster.brokers, self._cluster.settings
        group = group_metadata(brokers, self.request.memory, settings=settings)
        name = transactional_id(self.request.memory)
        with Transaction(brokers, name, group=group, settings={_TIMEOUT: _TRANSACTION_MS, **settings}) as transaction:
            # First: this ends the open transaction of a killed replay, so that the offsets read next are final.
            transaction.fence()
            memory = self._memory(plan.bounds, stable=True)
            sender = _Sender(transaction, memory=None if self.request.again else memory)
            return self._send(plan, sender, memory, audit=audit, stop=stop, progress=progress, edit=edit)

    def _send(
        self,
        plan: ReplayPlan,
        sender: "_Sender",
        memory: Mapping[TopicPartition, Tracker],
        *,
        audit: Audit,
        stop: threading.Event,
        progress: Callable[[int], None],
        edit: Edit | None,
    ) -> Sent:
        sent = Sent()
        for batch in self._batches(plan, memory):
            if stop.is_set():
                break
            began = time.monotonic()
            outgoing = [self._outgoing(letter, edit) for letter in batch]
            audit.sending([_line(letter, each) for letter, each in zip(batch, outgoing, strict=True)])
            sender.send(batch, outgoing)
            audit.sent()
            parked = sum(map(self._is_parked, batch))
            sent.parked += parked
            sent.replayed += len(batch) - parked
            progress(sent.total)
            if self.request.rate is not None:
                stop.wait(max(0.0, len(batch) / self.request.rate - (time.monotonic() - began)))
        return sent

    def _batches(self, plan: ReplayPlan, memory: Mapping[TopicPartition, Tracker]) -> Iterator[list[Letter]]:
        size = _BATCH if self.request.rate is None else max(1, min(_BATCH, int(self.request.rate)))
        batch: list[Letter] = []
        for letter in read_letters(self._cluster, plan.bounds, starts=self._starts(plan.bounds, memory)):
            tp = (letter.record.topic, letter.record.partition)
            fresh = self.request.again or bool(memory[tp].deliver([letter.record.offset]))
            if fresh and self.request.choice.fits(letter) and self._target(letter) is not None:
                batch.append(letter)
                if len(batch) == size:
                    yield batch
                    batch = []
        if batch:
            yield batch

    def _memory(
        self, bounds: Mapping[TopicPartition, Bounds], *, stable: bool = False
    ) -> dict[TopicPartition, Tracker]:
        commits = Groups(self._cluster).committed([self.request.memory], stable=stable)[self.request.memory]
        if isinstance(commits, PenstockError):
            raise commits
        return {tp: _tracker(commits.get(tp), each) for tp, each in bounds.items()}

    def _starts(
        self, bounds: Mapping[TopicPartition, Bounds], memory: Mapping[TopicPartition, Tracker]
    ) -> dict[TopicPartition, int]:
        if self.request.again:
            return {tp: each.start for tp, each in bounds.items()}
        return {tp: max(each.start, memory[tp].position or 0) for tp, each in bounds.items()}

    def _target(self, letter: Letter) -> str | None:
        """Return None if no header names a topic, the topic does not exist, or it is internal."""
        if self.request.to is not None:
            return self.request.to
        named = letter.note.topic
        usable = named in self._targets and named != self.request.topic and not named.startswith("__")
        return named if usable else None

    def _is_parked(self, letter: Letter) -> bool:
        return replay_count(letter.record.headers) >= self.request.returns

    def _outgoing(self, letter: Letter, edit: Edit | None) -> ProducerRecord:
        record = letter.record
        if self._is_parked(letter):
            return ProducerRecord(self.request.topic + PARKED, record.key, record.value, record.headers)
        values = {
            ReplayHeader.COUNT: str(replay_count(record.headers) + 1),
            ReplayHeader.FROM: str(record),
            ReplayHeader.AT: str(round(time.time() * 1000)),
        }
        added = tuple((name.value, value.encode()) for name, value in values.items())
        headers = (*without_failure_headers(record.headers), *added)
        outgoing = ProducerRecord(self._target(letter) or "", record.key, record.value, headers)
        return outgoing if edit is None else edit(letter, outgoing)


class _Sender:
    """Sends each batch in one transaction: the copies, and the commit of the replayed offsets."""

    def __init__(self, transaction: Transaction, *, memory: Mapping[TopicPartition, Tracker] | None) -> None:
        self._transaction = transaction
        self._memory = memory

    def send(self, letters: Sequence[Letter], outgoing: Sequence[ProducerRecord]) -> None:
        commits = self._remember(letters)
        try:
            with self._transaction:
                self._transaction.write(map(row_of, outgoing))
                self._transaction.commit(commits)
        except PenstockError as error:
            cause = kafka_error(error.__cause__) if error.__cause__ is not None else None
            if cause is not None and cause.code() in FENCED:
                raise StateError(
                    "Another replay of this topic has started and fenced this one.",
                    hint="Let the other replay finish. It does not send again what this one sent.",
                ) from error
            raise

    def _remember(self, letters: Sequence[Letter]) -> dict[TopicPartition, tuple[int, str]]:
        if self._memory is None:
            return {}
        touched: dict[TopicPartition, Tracker] = {}
        for letter in letters:
            tp = (letter.record.topic, letter.record.partition)
            touched[tp] = self._memory[tp]
            touched[tp].finish(letter.record.offset)
        return {tp: _commit(tp, tracker) for tp, tracker in touched.items()}


def _commit(tp: TopicPartition, tracker: Tracker) -> tuple[int, str]:
    point = tracker.commit_point or 0
    text = encode(point, tracker.finished_ranges())
    if text is None:
        raise StateError(
            f"{tp[0]}-{tp[1]}: the replayed offsets are too scattered to fit into the metadata of a commit.",
            hint="The batches before this one were sent and are remembered. Replay the rest in contiguous parts "
            "(--since, --until), or all of it.",
        )
    return point, text


def _tracker(commit: CommittedOffset | None, bounds: Bounds) -> Tracker:
    if commit is None or commit.offset < bounds.start:
        finished = [] if commit is None else [each for each in offset_map_of(commit) if each[1] > bounds.start]
        return Tracker(bounds.start, finished)
    return Tracker(commit.offset, offset_map_of(commit))


def _line(letter: Letter, outgoing: ProducerRecord) -> dict[str, object]:
    return {"from": str(letter.record), "to": outgoing.topic, "reason": letter.note.reason}
