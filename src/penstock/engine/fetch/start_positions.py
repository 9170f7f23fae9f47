"""Start positions of assigned partitions: the group's commits, else ``start``; ``from_`` overrides both."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition

from penstock.app import Handler, Start
from penstock.core.records.out_of_range import OutOfRange
from penstock.core.records.record import TopicPartition
from penstock.engine.dispatch.thread_messages import Assigned
from penstock.engine.fetch.store_session import StoreSession

_ANSWER_SECONDS = 10.0


class AssignedBefore:
    """The partitions that any member of this run has owned. ``from_`` applies only to a partition's first assignment.

    The members of one handler share it, so it has a lock.
    """

    def __init__(self) -> None:
        self._tps: set[TopicPartition] = set()
        self._lock = threading.Lock()

    def missing(self, tps: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return those of these partitions that no member has owned yet."""
        with self._lock:
            return [tp for tp in tps if tp not in self._tps]

    def add(self, tps: Iterable[TopicPartition]) -> None:
        with self._lock:
            self._tps.update(tps)


def find_positions(
    consumer: Any,
    handler: Handler,
    tps: Sequence[TopicPartition],
    assigned_before: AssignedBefore,
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
    saved = {tp: (each.offset, each.note) for tp, each in kept.items() if each.offset is not None}
    behind = frozenset(tp for tp, commit in saved.items() if committed[tp] != commit)  # Kafka's commit is outdated
    committed |= saved
    starts = _resolve(consumer, handler.start, [tp for tp, commit in committed.items() if commit is None])
    forced: dict[TopicPartition, int | None] = {}
    if handler.from_ is not None:
        first = assigned_before.missing(tps)
        named = handler.from_ if isinstance(handler.from_, Mapping) else first
        forced = _resolve(consumer, handler.from_, [tp for tp in first if tp in named])
    if store_session is not None and forced:
        store_session.forget(forced)
    finished = {tp: each.finished for tp, each in kept.items() if tp not in forced}
    # Last, because after an error above the next assignment of these partitions is still the first one.
    assigned_before.add(tps)
    return Assigned(committed, {**starts, **forced}, frozenset(forced), finished, behind)


def find_new_position(consumer: Any, handler: Handler, tp: TopicPartition, offset: int) -> OutOfRange:
    """Return where to continue if the log does not have this offset."""
    low, high = (_offsets_at(consumer, [tp], when)[tp] for when in (OFFSET_BEGINNING, OFFSET_END))
    wanted = _resolve(consumer, handler.start, [tp])[tp]
    if isinstance(handler.from_, Mapping) and handler.from_.get(tp) == offset > high:
        wanted = offset  # the user chose this offset; it does not come from a log that was recreated
    return OutOfRange.found(tp, offset, low=low, high=high, wanted=wanted)


def _resolve(consumer: Any, start: Start, tps: Sequence[TopicPartition]) -> dict[TopicPartition, int | None]:
    """Return an offset for each partition; None is the start of the log, which retention may move before the fetch.

    The end is looked up now. If the fetch did that, a next owner would skip the records written until its first fetch.
    """
    if start == "earliest" or not tps:
        return dict.fromkeys(tps)
    if start == "latest":
        return {**_offsets_at(consumer, tps, OFFSET_END)}
    if isinstance(start, datetime):
        found = _offsets_at(consumer, tps, int(start.timestamp() * 1000))
        late = [tp for tp, offset in found.items() if offset < 0]
        return {**found, **_offsets_at(consumer, late, OFFSET_END)}
    return {tp: start.get(tp) for tp in tps}


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
