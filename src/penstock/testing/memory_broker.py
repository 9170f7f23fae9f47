"""A broker in memory: topics with partitions, and the commits of groups."""

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Mapping
from itertools import count
from operator import attrgetter
from typing import Any

from penstock.app import RecordAdapter
from penstock.codecs import codec_of
from penstock.core.records.partitioner import partition_for
from penstock.core.records.record import Header, Record, TopicPartition

Commit = tuple[int, str]


class MemoryLog:
    """One partition: records by offset, with gaps where offsets were skipped."""

    def __init__(self) -> None:
        self._records: list[Record] = []
        self.end = 0

    def append(self, record: Record) -> None:
        self._records.append(record)
        self.end = record.offset + 1

    def skip(self, offsets: int) -> None:
        self.end += offsets

    def read(self, start: int, limit: int) -> list[Record]:
        """Return copies, as a real fetch does: the engine tells two deliveries of a record apart by identity."""
        first = bisect_left(self._records, start, key=attrgetter("offset"))
        return [copy(record) for record in self._records[first : first + limit]]

    def count_from(self, start: int) -> int:
        return len(self._records) - bisect_left(self._records, start, key=attrgetter("offset"))


class MemoryTopic:
    def __init__(self, name: str, partitions: int) -> None:
        self.name = name
        self.logs = [MemoryLog() for _ in range(partitions)]
        self.written: list[Record] = []
        """The records of all partitions, in the order in which they were written."""
        self._turns = count()

    def partition_of(self, key: bytes | None) -> int:
        """Choose by key; without a key partitions take turns, where a real producer chooses at random."""
        return next(self._turns) % len(self.logs) if key is None else partition_for(key, len(self.logs))


class Broker:
    """``partitions`` is how many a topic gets at its first use: a number for all topics, or by name (default 1)."""

    def __init__(self, now_ms: Callable[[], int], partitions: int | Mapping[str, int]) -> None:
        self._now_ms = now_ms
        self._partitions = partitions
        self._topics: dict[str, MemoryTopic] = {}
        self._commits: dict[tuple[str, TopicPartition], Commit] = {}

    def topic(self, name: str) -> MemoryTopic:
        if name not in self._topics:
            wanted = self._partitions if isinstance(self._partitions, int) else self._partitions.get(name, 1)
            self._topics[name] = MemoryTopic(name, wanted)
        return self._topics[name]

    def topic_partitions(self, name: str) -> list[TopicPartition]:
        return [(name, partition) for partition in range(len(self.topic(name).logs))]

    def log(self, tp: TopicPartition) -> MemoryLog:
        return self.topic(tp[0]).logs[tp[1]]

    def append(
        self,
        name: str,
        key: bytes | None,
        value: bytes | None,
        headers: tuple[Header, ...] = (),
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Record:
        topic = self.topic(name)
        number = topic.partition_of(key) if partition is None else partition
        written_ms = self._now_ms() if timestamp_ms is None else timestamp_ms
        record = Record(name, number, topic.logs[number].end, key, value, headers, written_ms)
        topic.logs[number].append(record)
        topic.written.append(record)
        return record

    def commit(self, group: str, tp: TopicPartition, commit: Commit) -> None:
        self._commits[group, tp] = commit

    def committed(self, group: str, tp: TopicPartition) -> Commit | None:
        return self._commits.get((group, tp))


def copy(record: Record, attempt: int = 1) -> Record:
    tp = (record.topic, record.partition, record.offset)
    return Record(*tp, record.key, record.value, record.headers, record.timestamp_ms, attempt)


async def at_once(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call it on this thread: a thread would answer at a moment that the bench does not control."""
    return function(*arguments)


def is_for_the_test(error: BaseException) -> bool:
    """Whether the test must see this error: Ctrl+C, ``crash``, and the ``fail`` and ``skip`` of test runners."""
    return not isinstance(error, Exception | SystemExit | asyncio.CancelledError | GeneratorExit)


READING = RecordAdapter(to_record=copy, codec_of=codec_of, run_blocking=at_once, reraises=is_for_the_test)
