"""Builds dead letters and retry records from failed attempts, and reads what comes back from retry topics."""

from collections.abc import Callable, Sequence

from penstock.app.attempts.record_adapter import RecordAdapter
from penstock.app.handler import Handler
from penstock.core.failures.dead_letter import dead_letter
from penstock.core.failures.outcome import Delayed, Failed, ProducerRecord
from penstock.core.failures.retry_topic import read_retry_info, retry_record
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.effects import Attempt, Returned
from penstock.core.scheduling.lanes import AnyRecord


class FailedRecords:
    """``clock`` is a wall clock: people read the times of failures, and other processes read due times."""

    def __init__(self, handler: Handler, adapter: RecordAdapter, clock: Callable[[], float]) -> None:
        self._handler = handler
        self._to_record = adapter.to_record
        self._clock = clock

    def dead_letter(self, tried: Attempt, failure: Failed) -> ProducerRecord:
        return dead_letter(
            self._to_record(tried.record, tried.attempt),
            failure,
            topic=self._handler.dead_letter or "",
            group=self._handler.group,
            attempts=tried.attempt,
            now=self._clock(),
        )

    def retry_record(self, tried: Attempt, why: Failed | Delayed, delay: float) -> ProducerRecord:
        here, delayed = tried.epoch.tp[0], self._handler.delayed
        source = delayed[here].source if here in delayed else here
        (topic,) = (each.name for each in delayed.values() if (each.source, each.seconds) == (source, delay))
        return retry_record(
            self._to_record(tried.record, tried.attempt),
            why,
            topic=topic,
            group=self._handler.group,
            attempt=tried.attempt if isinstance(why, Delayed) else tried.attempt + 1,
            due=self._clock() + delay,
        )

    def read_returned(self, tp: TopicPartition, batch: Sequence[AnyRecord]) -> list[Returned]:
        """Parse the headers of records of a retry topic, which say when each is due."""
        group, longest, now = self._handler.group, self._handler.delayed[tp[0]].seconds, self._clock()
        return [
            Returned(each, read_retry_info(self._to_record(each, 1).headers, group=group, longest=longest, now=now))
            for each in batch
        ]
