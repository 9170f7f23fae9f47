"""Records that leave the app because an attempt failed: to the dead letters, or to a retry topic and back."""

from collections.abc import Callable, Sequence

from penstock.app import Handler, Reading
from penstock.core.failures.dead_letter import dead_letter
from penstock.core.failures.outcome import Failed, Outgoing
from penstock.core.failures.retry_topic import read_return, retry_record
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.effects import Returned, Tried
from penstock.core.scheduling.lanes import AnyRecord


class Letters:
    """``clock`` is the wall's: failures are dated for people, and due times must hold in other processes."""

    def __init__(self, handler: Handler, reading: Reading, clock: Callable[[], float]) -> None:
        self._handler = handler
        self._to_record = reading.to_record
        self._clock = clock

    def dead_letter(self, tried: Tried, failure: Failed) -> Outgoing:
        return dead_letter(
            self._to_record(tried.record, tried.attempt),
            failure,
            topic=self._handler.dead_letter or "",
            group=self._handler.group,
            attempts=tried.attempt,
            now=self._clock(),
        )

    def retry_record(self, tried: Tried, failure: Failed, delay: float) -> Outgoing:
        here, delayed = tried.epoch.place[0], self._handler.delayed
        source = delayed[here].source if here in delayed else here
        (topic,) = (each.name for each in delayed.values() if (each.source, each.seconds) == (source, delay))
        return retry_record(
            self._to_record(tried.record, tried.attempt),
            failure,
            topic=topic,
            group=self._handler.group,
            attempt=tried.attempt + 1,
            due=self._clock() + delay,
        )

    def read_returned(self, place: TopicPartition, batch: Sequence[AnyRecord]) -> list[Returned]:
        """Records of a retry topic, each with what its headers say about when it is due."""
        group, longest, now = self._handler.group, self._handler.delayed[place[0]].seconds, self._clock()
        return [
            Returned(each, read_return(self._to_record(each, 1).headers, group=group, longest=longest, now=now))
            for each in batch
        ]
