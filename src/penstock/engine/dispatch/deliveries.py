"""Puts fetched records on their lanes."""

from collections.abc import Callable, Mapping, Sequence

from penstock.app import Handler
from penstock.app.attempts.failed_records import FailedRecords
from penstock.app.dispatching.reporter import Reporter
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.dispatch import NOTHING, Dispatch
from penstock.core.scheduling.lanes import AnyRecord
from penstock.engine.dispatch.thread_messages import Fetched


class Deliveries:
    """The dispatcher's thread owns it."""

    def __init__(
        self,
        handler: Handler,
        dispatch: Dispatch,
        failed_records: FailedRecords,
        reporter: Reporter,
        *,
        offset_of: Callable[[AnyRecord], int],
        clock: Callable[[], float],
    ) -> None:
        self._retry_topics = frozenset(handler.delayed)
        self._dispatch = dispatch
        self._failed_records = failed_records
        self._reporter = reporter
        self._offset_of = offset_of
        self._clock = clock

    def take(self, fetched: Fetched) -> None:
        """Deliver these records, and note the ends of partitions."""
        excesses = fetched.excesses
        for tp, batch in fetched.records.items():
            if tp[0] in self._retry_topics:
                self._take_returned(tp, batch, excesses.get(tp, NOTHING))
            else:
                self._dispatch.deliver(tp, batch, excesses.get(tp, NOTHING))
        if excesses:
            self._dispatch.in_flight.received(sum(sum(each.values()) for each in excesses.values()))
        for tp, offset in fetched.ends.items():
            self._dispatch.reach(tp, offset)

    def _take_returned(self, tp: TopicPartition, batch: Sequence[AnyRecord], excesses: Mapping[int, int]) -> None:
        """Deliver records of a retry topic, whose headers say when they are due."""
        returned = self._failed_records.read_returned(tp, batch)
        begun = self._dispatch.deliver_returned(tp, returned, self._clock(), excesses)
        damaged = [each for each in begun if each.said.problem]
        if damaged:
            offset = self._offset_of(damaged[0].record)
            self._reporter.damaged_headers(tp, offset, len(damaged), damaged[0].said.problem)
