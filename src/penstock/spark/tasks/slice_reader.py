"""Reads the records of slices with the Kafka client, as the local engine reads them: committed records only."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from confluent_kafka import KafkaException, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from penstock.core.progress.slices import Slice
from penstock.core.records.record import TopicPartition
from penstock.errors import PenstockError
from penstock.kafka.client.message_records import tp_of
from penstock.kafka.error_codes import OUT_OF_RANGE, Code
from penstock.kafka.errors import translate

_MOST_RECORDS = 2_000


class SliceReader:
    """Reads each slice up to its end. A log may have no record at some offsets: only ``read_to`` says how far it is."""

    def __init__(self, consumer: Any, slices: Iterable[Slice], *, brokers: str) -> None:
        self._consumer = consumer
        self._brokers = brokers
        self._ends = {each.tp: each.end for each in slices}
        self.read_to: dict[TopicPartition, int] = {each.tp: each.start for each in slices}
        """Each partition is read up to here."""
        self.out_of_range: set[TopicPartition] = set()
        """Partitions whose log does not have the next offset."""
        self._open = {tp for tp, end in self._ends.items() if self.read_to[tp] < end}
        consumer.assign([KafkaTopicPartition(*tp, self.read_to[tp]) for tp in self._open])

    @property
    def is_done(self) -> bool:
        return not self._open

    def read(self, limit: int, seconds: float) -> list[tuple[TopicPartition, Sequence[Message]]]:
        """Return up to ``limit`` records, by partition. Waits for them up to ``seconds``."""
        # The call waits until it has all that it asks for, so it asks for no more than the slice has. Where offsets
        # have no record, it waits in vain, but only once: at the end of the slice.
        messages = self._consumer.consume(min(limit, self._left(), _MOST_RECORDS), seconds)
        notices: list[Message] = []
        if any(map(Message.error, messages)):
            notices = [message for message in messages if message.error() is not None]
            messages = [message for message in messages if message.error() is None]
        found = list(self._by_partition(messages))
        for notice in notices:
            self._note(notice)
        return found

    def stop(self, tp: TopicPartition) -> None:
        """Read no more of this partition."""
        self._open.discard(tp)
        if self._open:
            self._consumer.incremental_unassign([KafkaTopicPartition(*tp)])

    def close(self) -> None:
        """The client fetches nothing until the next slice; it keeps its connections."""
        self._consumer.unassign()

    def _left(self) -> int:
        return max(1, sum(self._ends[tp] - self.read_to[tp] for tp in self._open))

    def _by_partition(self, messages: list[Message]) -> Iterator[tuple[TopicPartition, Sequence[Message]]]:
        if len(self._ends) == 1:
            (tp,) = self._ends
            yield from self._taken(tp, messages)
            return
        for tp, adjacent in groupby(messages, tp_of):
            yield from self._taken(tp, list(adjacent))

    def _taken(self, tp: TopicPartition, batch: list[Message]) -> Iterator[tuple[TopicPartition, Sequence[Message]]]:
        """Yield the records of the slice, without those behind its end."""
        if not batch or tp not in self._open:
            return
        end, last = self._ends[tp], batch[-1].offset() or 0
        if last >= end:
            batch = [message for message in batch if (message.offset() or 0) < end]
        self._reach(tp, last + 1)
        if batch:
            yield tp, batch

    def _reach(self, tp: TopicPartition, offset: int) -> None:
        self.read_to[tp] = min(max(offset, self.read_to[tp]), self._ends[tp])
        if self.read_to[tp] == self._ends[tp]:
            self.stop(tp)

    def _note(self, message: Message) -> None:
        error, tp = message.error(), tp_of(message)
        if error is None or tp not in self._open:
            return
        if error.code() == Code.LOCAL_PARTITION_EOF:
            # The last offsets may have no record: those of transaction markers, or of records that compaction removed.
            self._reach(tp, message.offset() or 0)
            self.stop(tp)
        elif int(error.code()) in OUT_OF_RANGE:
            # The client may still report the offset of an earlier slice.
            if (message.offset() or 0) < 0 or (message.offset() or 0) >= self.read_to[tp]:
                self.out_of_range.add(tp)
                self.stop(tp)
        else:
            raise self._failure(message)

    def _failure(self, message: Message) -> PenstockError:
        topic, partition = tp_of(message)
        error = KafkaException(message.error())
        doing = f"reading {topic}[{partition}] from offset {self.read_to.get((topic, partition))}"
        found = translate(error, doing=doing, brokers=self._brokers)
        found.__cause__ = error
        return found
