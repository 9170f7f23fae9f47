"""From where on partitions are fetched: the group's commits, else ``start``, or ``from_`` before everything."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaException, TopicPartition

from penstock.app import Handler, Start
from penstock.core.records.out_of_range import OutOfRange
from penstock.core.records.record import TopicPartition as Place
from penstock.engine.dispatch.thread_messages import Assigned
from penstock.engine.fetch.store_session import Keeper

_ANSWER_SECONDS = 10.0


class FirstTimes:
    """Which partitions the members of one run have had before; ``from_`` counts only the first time."""

    def __init__(self) -> None:
        self._had: set[Place] = set()
        self._lock = threading.Lock()

    def among(self, places: Iterable[Place]) -> list[Place]:
        with self._lock:
            return [place for place in places if place not in self._had]

    def note(self, places: Iterable[Place]) -> None:
        with self._lock:
            self._had.update(places)


def find_positions(
    consumer: Any, handler: Handler, places: Sequence[Place], first_times: FirstTimes, keeper: Keeper | None = None
) -> Assigned:
    """Where these partitions stand, asked of the broker, and of the keeper where there is one, who knows better."""
    if not places:
        return Assigned({})
    found = _sound(consumer.committed(_partitions(places), timeout=_ANSWER_SECONDS))
    committed = {
        (each.topic, each.partition): (each.offset, each.metadata or "") if each.offset >= 0 else None for each in found
    }
    kept = {} if keeper is None else keeper.claim(places)
    saved = {place: (each.offset, each.note) for place, each in kept.items() if each.offset is not None}
    behind = frozenset(place for place, commit in saved.items() if committed[place] != commit)
    committed |= saved
    starts = _resolve(consumer, handler.start, [place for place, commit in committed.items() if commit is None])
    forced: dict[Place, int | None] = {}
    if handler.from_ is not None:
        first = first_times.among(places)
        named = handler.from_ if isinstance(handler.from_, Mapping) else first
        forced = _resolve(consumer, handler.from_, [place for place in first if place in named])
    if keeper is not None and forced:
        keeper.forget(forced)
    finished = {place: each.finished for place, each in kept.items() if place not in forced}
    # Only now: where the broker did not answer, it is the first time again.
    first_times.note(places)
    return Assigned(committed, {**starts, **forced}, frozenset(forced), finished, behind)


def find_new_position(consumer: Any, handler: Handler, place: Place, offset: int) -> OutOfRange:
    """Where to go on, as the log does not have this offset."""
    low, high = (_offsets_at(consumer, [place], when)[place] for when in (OFFSET_BEGINNING, OFFSET_END))
    wanted = _resolve(consumer, handler.start, [place])[place]
    if isinstance(handler.from_, Mapping) and handler.from_.get(place) == offset > high:
        wanted = offset  # it is the user's own offset, and not one of a log that was recreated
    return OutOfRange.found(place, offset, low=low, high=high, wanted=wanted)


def _resolve(consumer: Any, start: Start, places: Sequence[Place]) -> dict[Place, int | None]:
    """An offset for each, or None for where the log starts, whatever retention does until it is fetched.

    The end is looked up here and now: left to the fetch, what is written until a next owner fetches would be passed by.
    """
    if start == "earliest" or not places:
        return dict.fromkeys(places)
    if start == "latest":
        return {**_offsets_at(consumer, places, OFFSET_END)}
    if isinstance(start, datetime):
        found = _offsets_at(consumer, places, int(start.timestamp() * 1000))
        late = [place for place, offset in found.items() if offset < 0]
        return {**found, **_offsets_at(consumer, late, OFFSET_END)}
    return {place: start.get(place) for place in places}


def _offsets_at(consumer: Any, places: Sequence[Place], when: int) -> dict[Place, int]:
    """The first offset from a moment on (in milliseconds, or a name such as OFFSET_END); below 0 if there is none."""
    asked = [TopicPartition(*place, when) for place in places]
    found = _sound(consumer.offsets_for_times(asked, timeout=_ANSWER_SECONDS)) if asked else []
    return {(each.topic, each.partition): each.offset for each in found}


def _sound(answers: list[TopicPartition]) -> list[TopicPartition]:
    for each in answers:
        if each.error is not None:
            raise KafkaException(each.error)
    return answers


def _partitions(places: Iterable[Place]) -> list[TopicPartition]:
    return [TopicPartition(*place) for place in places]
