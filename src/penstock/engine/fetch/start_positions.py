"""From where on partitions are fetched: the group's commits, else ``start``, or ``from_`` before everything."""

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


class FirstTimes:
    """Which partitions the members of one run have had before; ``from_`` counts only the first time."""

    def __init__(self) -> None:
        self._had: set[TopicPartition] = set()
        self._lock = threading.Lock()

    def among(self, tps: Iterable[TopicPartition]) -> list[TopicPartition]:
        with self._lock:
            return [tp for tp in tps if tp not in self._had]

    def note(self, tps: Iterable[TopicPartition]) -> None:
        with self._lock:
            self._had.update(tps)


def find_positions(
    consumer: Any,
    handler: Handler,
    tps: Sequence[TopicPartition],
    first_times: FirstTimes,
    store_session: StoreSession | None = None,
) -> Assigned:
    """Where these partitions stand, asked of the broker, and of the keeper where there is one, who knows better."""
    if not tps:
        return Assigned({})
    found = _sound(consumer.committed(_partitions(tps), timeout=_ANSWER_SECONDS))
    committed = {
        (each.topic, each.partition): (each.offset, each.metadata or "") if each.offset >= 0 else None for each in found
    }
    kept = {} if store_session is None else store_session.claim(tps)
    saved = {tp: (each.offset, each.note) for tp, each in kept.items() if each.offset is not None}
    behind = frozenset(tp for tp, commit in saved.items() if committed[tp] != commit)
    committed |= saved
    starts = _resolve(consumer, handler.start, [tp for tp, commit in committed.items() if commit is None])
    forced: dict[TopicPartition, int | None] = {}
    if handler.from_ is not None:
        first = first_times.among(tps)
        named = handler.from_ if isinstance(handler.from_, Mapping) else first
        forced = _resolve(consumer, handler.from_, [tp for tp in first if tp in named])
    if store_session is not None and forced:
        store_session.forget(forced)
    finished = {tp: each.finished for tp, each in kept.items() if tp not in forced}
    # Only now: where the broker did not answer, it is the first time again.
    first_times.note(tps)
    return Assigned(committed, {**starts, **forced}, frozenset(forced), finished, behind)


def find_new_position(consumer: Any, handler: Handler, tp: TopicPartition, offset: int) -> OutOfRange:
    """Where to go on, as the log does not have this offset."""
    low, high = (_offsets_at(consumer, [tp], when)[tp] for when in (OFFSET_BEGINNING, OFFSET_END))
    wanted = _resolve(consumer, handler.start, [tp])[tp]
    if isinstance(handler.from_, Mapping) and handler.from_.get(tp) == offset > high:
        wanted = offset  # it is the user's own offset, and not one of a log that was recreated
    return OutOfRange.found(tp, offset, low=low, high=high, wanted=wanted)


def _resolve(consumer: Any, start: Start, tps: Sequence[TopicPartition]) -> dict[TopicPartition, int | None]:
    """An offset for each, or None for where the log starts, whatever retention does until it is fetched.

    The end is looked up here and now: left to the fetch, what is written until a next owner fetches would be passed by.
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
    """The first offset from a moment on (in milliseconds, or a name such as OFFSET_END); below 0 if there is none."""
    asked = [KafkaTopicPartition(*tp, when) for tp in tps]
    found = _sound(consumer.offsets_for_times(asked, timeout=_ANSWER_SECONDS)) if asked else []
    return {(each.topic, each.partition): each.offset for each in found}


def _sound(answers: list[KafkaTopicPartition]) -> list[KafkaTopicPartition]:
    for each in answers:
        if each.error is not None:
            raise KafkaException(each.error)
    return answers


def _partitions(tps: Iterable[TopicPartition]) -> list[KafkaTopicPartition]:
    return [KafkaTopicPartition(*tp) for tp in tps]
