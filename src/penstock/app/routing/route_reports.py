"""Which route handled which record: for the events of single records, and for the counts of each route."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

from penstock.app.attempts.record_adapter import RecordAdapter
from penstock.app.handler import Handler
from penstock.app.routing.route_group import RouteGroup
from penstock.core.failures.outcome import Done, Outcome
from penstock.core.records.record import TopicPartition
from penstock.core.reports.events import Routed, RouteProgressed
from penstock.core.reports.record_counts import Counts
from penstock.core.scheduling.effects import Attempt, Effects, Result, Send
from penstock.core.scheduling.lanes import Epoch


def routed_events(handlers: Iterable[Handler]) -> Iterator[Routed]:
    """For the start of a run: which handlers share a member, and what happens to the records that none takes."""
    for handler in handlers:
        if isinstance(handler, RouteGroup):
            names, otherwise = tuple(route.name for route in handler.routes), handler.chosen_otherwise
            yield Routed(group=handler.group, handler=handler.name, routes=names, otherwise=otherwise)


class RouteReports:
    """The reporter of a route group has one, on its thread.

    Outcomes name their routes, and the effects of outcomes do not. So it keeps the names of unfinished records, which
    ``max_in_flight`` limits.
    """

    def __init__(self, group: Handler, adapter: RecordAdapter) -> None:
        self._group = group
        self._offset_of = adapter.offset_of
        self._unfinished: dict[TopicPartition, tuple[Epoch, dict[int, str]]] = {}
        self._written: dict[tuple[TopicPartition, int], str] = {}  # on Spark: the routes of outputs, by their records
        self._reported: dict[str, Counts] = {}
        self.counts = {route.name: Counts() for route in group.routes}

    def note(self, results: Sequence[Result]) -> None:
        """Workers have these outcomes."""
        noted: dict[int, int] = {}
        for run, outcomes, _ in results:
            first = noted.get(id(run), run.collected)
            noted[id(run)] = first + len(outcomes)
            names = self._names(run.epoch)
            for record, outcome in zip(run.records[first:], outcomes):  # noqa: B905 - there may be more records
                names[self._offset_of(record)] = outcome.handler

    def note_one(self, tried: Attempt, outcome: Outcome) -> None:
        self._names(tried.epoch)[tried.offset] = outcome.handler

    def name_of(self, epoch: Epoch, offset: int) -> str:
        """The route that ran this unfinished record; the group for a record that none of its routes took."""
        return self._names(epoch).get(offset) or self._group.name

    def settled(self, effects: Effects) -> None:
        """These records are finished."""
        for tried, _ in effects.skipped:
            self._of(self.name_of(tried.epoch, tried.offset)).skipped += 1
        for epoch, records in effects.finished:
            names = self._names(epoch)
            for record in records:
                self._of(names.pop(self._offset_of(record), "")).read += 1

    def delivered(self, send: Send) -> None:
        """The broker has the output, the dead letter or the retry copy of this record."""
        counts = self._of(self._names(send.tried.epoch).pop(send.tried.offset, ""))
        if send.delay is not None:
            return
        counts.read += 1
        if send.failure is None:
            counts.written += send.output_count
        else:
            counts.dead_lettered += 1

    def written(self, epoch: Epoch, offset: int, done: Done) -> None:
        """On Spark: outputs count before the broker has them. A slice limits how many it may refuse."""
        self._of(done.handler).written += len(done.outputs)
        self._written[epoch.tp, offset] = done.handler

    def refused(self, send: Send) -> None:
        """On Spark: the broker has refused an output, so the record belongs to its route again."""
        tried = send.tried
        route = self._written.pop((tried.epoch.tp, tried.offset), "")
        counts = self._of(route)
        counts.read -= 1
        counts.written -= send.output_count
        self._names(tried.epoch)[tried.offset] = route

    def progress(self) -> Iterator[RouteProgressed]:
        """An event for each route whose counts have changed since the last call."""
        for name, counts in self.counts.items():
            if self._reported.get(name) != counts:
                self._reported[name] = counts + Counts()
                yield RouteProgressed(group=self._group.group, handler=name, **asdict(counts))

    def _of(self, name: str) -> Counts:
        return self.counts.get(name) or Counts()  # those of no route are in the counts of the group

    def _names(self, epoch: Epoch) -> dict[int, str]:
        known, names = self._unfinished.get(epoch.tp, (epoch, {}))
        if known is not epoch:
            if epoch.number < known.number:  # a late outcome of an epoch that is over
                return {}
            names = {}
        self._unfinished[epoch.tp] = (epoch, names)
        return names
