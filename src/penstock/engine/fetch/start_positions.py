"""Start positions of assigned partitions: the group's commits, else ``start``; ``from_`` overrides both."""

import threading
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition

from penstock.app import Handler, Start
from penstock.core.records.out_of_range import OutOfRange
from penstock.core.records.record import TopicPartition
from penstock.engine.dispatch.thread_messages import Assigned
from penstock.engine.fetch.store_session import StoreSession

_ANSWER_SECONDS = 10.0


class KnownPartitions:
    """The partitions that existed when the run began (None: all), and those that any member of this run has owned.

    ``from_`` applies only to a partition's first assignment. The members of one handler share it, so it has a lock.
    """

    def __init__(self, at_start: Iterable[TopicPartition] | None = None) -> None:
        self._at_start = None if at_start is None else frozenset(at_start)
        self.count = 0 if self._at_start is None else len(self._at_start)
        """How many there are now. The topic watcher's thread writes it if a rate needs it."""
        self._owned: set[TopicPartition] = set()
        self._lock = threading.Lock()

    def never_owned(self, tps: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return those of these partitions that no member has owned yet."""
        with self._lock:
            return [tp for tp in tps if tp not in self._owned]

    def add_owned(self, tps: Iterable[TopicPartition]) -> None:
        with self._lock:
            self._owned.update(tps)

    def were_added(self, tps: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
        """Return those of these partitions that were created after the run began."""
        return frozenset() if self._at_start is None else frozenset(tps) - self._at_start


def find_positions(
    consumer: Any,
    handler: Handler,
    tps: Sequence[TopicPartition],
    known: KnownPartitions,
    store_session: StoreSession | None = None,
) -> Assigned:
    """Ask the broker, and the store if there is one, where to start each partition. The store overrides the broker.

    Raises KafkaException if the broker does not answer, and StoreError if the store does not.
    """
    if not tps:
        return Assigned({})
    found = _checked(consumer.committed(_partitions(tps), timeout=_ANSWER_SECONDS))
    committed = {
        (each.topic, each.partition): (each.offset, each.metadata or "") if each.offset >= 0 else None for each in found
    }
    kept = {} if store_session is None else store_session.claim(tps)
    saved = {tp: (each.offset, each.metadata) for tp, each in kept.items() if each.offset is not None}
    behind = frozenset(tp for tp, commit in saved.items() if committed[tp] != commit)  # Kafka's commit is outdated
    committed |= saved
    added = known.were_added(tps)
    missing = [tp for tp, commit in committed.items() if commit is None]
    starts = _resolve(consumer, handler.start, missing, added=added)
    forced: dict[TopicPartition, int | None] = {}
    if handler.from_ is not None:
        # Not retry topics: what waits there is not skipped, and what was retried before does not come again.
        first = [tp for tp in known.never_owned(tps) if tp[0] not in handler.delayed]
        named = handler.from_ if isinstance(handler.from_, Mapping) else first
        forced = _resolve(consumer, handler.from_, [tp for tp in first if tp in named], added=added)
    if store_session is not None and forced:
        store_session.forget(forced)
    finished = {tp: each.finished for tp, each in kept.items() if tp not in forced}
    # Last, because after an error above the next assignment of these partitions is still the first one.
    known.add_owned(tps)
    return Assigned(committed, {**starts, **forced}, frozenset(forced), finished, behind)


def find_new_position(consumer: Any, handler: Handler, tp: TopicPartition, offset: int) -> OutOfRange:
    """Return where to continue if the log does not have this offset."""
    low, high = (_offsets_at(consumer, [tp], when)[tp] for when in (OFFSET_BEGINNING, OFFSET_END))
    wanted = _resolve(consumer, handler.start, [tp])[tp]
    if isinstance(handler.from_, Mapping) and handler.from_.get(tp) == offset > high:
        wanted = offset  # the user chose this offset; it does not come from a log that was recreated
    return OutOfRange.found(tp, offset, low=low, high=high, wanted=wanted)


def _resolve(
    consumer: Any, start: Start, tps: Sequence[TopicPartition], *, added: Container[TopicPartition] = ()
) -> dict[TopicPartition, int | None]:
    """Return an offset for each partition; None is the start of the log, which retention may move before the fetch.

    The end is looked up now. If the fetch did that, a next owner would skip the records written until its first fetch.
    Where ``start`` means the end or a time, an added partition begins at its start: all its records are new.
    """
    if start == "earliest" or not tps:
        return dict.fromkeys(tps)
    if isinstance(start, Mapping):
        return {tp: start.get(tp) for tp in tps}
    others = [tp for tp in tps if tp not in added]
    ends = _offsets_at(consumer, others, OFFSET_END)
    if start == "latest":
        return {**dict.fromkeys(tps), **ends}
    # The ends were asked for before, so that a record that is written meanwhile is not skipped.
    found = _offsets_at(consumer, others, int(start.timestamp() * 1000))
    return {**dict.fromkeys(tps), **{tp: ends[tp] if offset < 0 else offset for tp, offset in found.items()}}


def _offsets_at(consumer: Any, tps: Sequence[TopicPartition], when: int) -> dict[TopicPartition, int]:
    """Return the first offset at or after a time in milliseconds, or at a symbolic offset such as OFFSET_END.

    Negative if none.
    """
    asked = [KafkaTopicPartition(*tp, when) for tp in tps]
    found = _checked(consumer.offsets_for_times(asked, timeout=_ANSWER_SECONDS)) if asked else []
    return {(each.topic, each.partition): each.offset for each in found}


def _checked(answers: list[KafkaTopicPartition]) -> list[KafkaTopicPartition]:
    for each in answers:
        if each.error is not None:
            raise KafkaException(each.error)
    return answers


def _partitions(tps: Iterable[TopicPartition]) -> list[KafkaTopicPartition]:
    return [KafkaTopicPartition(*tp) for tp in tps]
