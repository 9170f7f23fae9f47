"""What commands change in a running member: pauses and limits."""

from penstock.app import Handler
from penstock.app.dispatching.running_concurrency import RunningConcurrency
from penstock.app.dispatching.running_rate import RunningRate
from penstock.app.runs.live_command import HandlerState, LiveCommand, changed_handler
from penstock.core.scheduling.dispatch import Dispatch
from penstock.engine.dispatch.works_in_progress import WorksInProgress


class LiveControl:
    """The dispatcher's thread owns it. Commands were checked before (``app/runs/live_command.py``)."""

    def __init__(
        self,
        handler: Handler,
        dispatch: Dispatch,
        concurrency: RunningConcurrency,
        rate: RunningRate,
        works: WorksInProgress,
    ) -> None:
        self._handler = handler
        self._rate = rate
        self._dispatch = dispatch
        self._concurrency = concurrency
        self._works = works

    def carry_out(self, command: LiveCommand) -> None:
        """After a pause, workers begin no further record of what is paused, not even of the works that they have."""
        paused = self._dispatch.commanded
        if command.action == "pause":
            paused.pause(command.partitions)
            self._works.take_back()
        elif command.action == "resume":
            paused.resume(command.partitions)
        else:
            self._handler = changed_handler(command, self._handler)
            if "concurrency" in command.changes:
                self._concurrency.follow(self._handler)
            if "rate" in command.changes:
                self._rate.set(self._handler.rate)

    @property
    def state(self) -> HandlerState:
        paused = self._dispatch.commanded
        return HandlerState(
            handler=self._handler.name,
            group=self._handler.group,
            paused=paused.covers_all,
            paused_partitions=tuple(sorted(paused.partitions)),
            partitions=tuple(sorted(epoch.tp for epoch in self._dispatch.epochs)),
            concurrency=self._concurrency.limit,
            rate=None if self._rate.rate is None else str(self._rate.rate),
        )
