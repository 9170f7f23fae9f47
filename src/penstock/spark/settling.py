"""Handles the outcomes of a task's records: rows for the sink, counts, retries, or the end of the task."""

import random
import time
from collections.abc import Sequence
from typing import cast

from penstock.app import Handler, breaker_error, halt_error
from penstock.core.failures.breaker import Circuit
from penstock.core.failures.dead_letter import dead_letter
from penstock.core.failures.outcome import Done, Failed, Outcome, Skipped, ToDeadLetter, TryAgain, decide
from penstock.core.reports.record_counts import Counts
from penstock.core.scheduling.lanes import Epoch
from penstock.core.scheduling.schedule import Later
from penstock.spark.arrow_columns import ROWS, Row, SinkColumns

_ONLY_DONE = {Done}


class Settlement:
    """Collects outputs and dead letters in ``outgoing``, and counts, until the task takes them."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._circuit = None if handler.breaker is None else Circuit(handler.breaker)
        self.outgoing = SinkColumns()
        self._counts = Counts()

    def settle(self, epoch: Epoch, rows: Sequence[Row], outcomes: Sequence[Outcome], now: float) -> list[Later]:
        """Handle outcomes. Returns the records to retry; raises an error if the task cannot continue."""
        if _ONLY_DONE.issuperset(map(type, outcomes)):  # nearly always, and then all at once
            self._finish(cast("Sequence[Done]", outcomes))
            if epoch.failures:
                for row in rows:
                    epoch.failures.pop(ROWS.offset_of(row), None)
            return []
        retries: list[Later] = []
        for row, outcome in zip(rows, outcomes, strict=True):
            if isinstance(outcome, Failed):
                wait = self._fail(epoch, row, outcome)
                if wait is not None:
                    retries.append((row, now + wait))
                    continue
            elif isinstance(outcome, Skipped):
                self._count_finished(1)
                self._counts.skipped += 1
            elif isinstance(outcome, Done):  # and nothing else: commit="manual" is refused on Spark
                self._finish([outcome])
            epoch.failures.pop(ROWS.offset_of(row), None)
        return retries

    def _finish(self, done: Sequence[Done]) -> None:
        outputs = [each.output for each in done if each.output is not None]
        self._counts.written += len(outputs)
        self.outgoing.extend(outputs)
        self._count_finished(len(done))

    def _count_finished(self, count: int) -> None:
        self._counts.read += count
        if self._circuit is not None:
            self._circuit.finished(count)

    def _fail(self, epoch: Epoch, row: Row, failure: Failed) -> float | None:
        """Return the seconds until the next attempt; None if the record became a dead letter."""
        handler, circuit = self._handler, self._circuit
        topic, offset = handler.dead_letter, ROWS.offset_of(row)
        attempt = epoch.attempt_at(offset)
        decision = decide(failure, attempt=attempt, has_dead_letter=topic is not None, random=random.random)
        if isinstance(decision, TryAgain):
            if failure.wait is None:  # otherwise no attempt was made
                epoch.failures[offset] = attempt
            return decision.delay
        record = ROWS.to_record(row, attempt)
        if not isinstance(decision, ToDeadLetter) or topic is None:
            raise halt_error(handler.name, record, failure)
        if circuit is not None and not circuit.lets_through():
            raise breaker_error(handler.name, record, failure, circuit)
        letter = dead_letter(record, failure, topic=topic, group=handler.group, attempts=attempt, now=time.time())
        self.outgoing.extend([letter])
        self._counts.read += 1
        self._counts.dead_lettered += 1
        return None

    def take_counts(self) -> Counts:
        """Return the counts since the last call."""
        counts, self._counts = self._counts, Counts()
        return counts
