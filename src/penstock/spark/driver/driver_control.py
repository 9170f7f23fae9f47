"""Commands to an app on Spark: the driver hands out no further slices of what is paused.

A slice that runs goes on to its end. Another concurrency counts from the next slice.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.app import App, Handler, NoControl, refuse_unsupported
from penstock.app.runs.live_command import HandlerState, LiveCommand, addressed, changed_handler, commanded
from penstock.core.progress.slices import PartitionSlices
from penstock.core.records.record import TopicPartition
from penstock.core.reports.events import Event
from penstock.core.scheduling.commanded_pause import PausedPartitions
from penstock.errors import StateError
from penstock.spark.driver.no_control import NO_PROGRESS


class DriverControl:
    """What commands have changed of one handler. Any thread writes it; the driver's thread reads it for each slice."""

    refusal = None

    def __init__(self, handler: Handler, partitions: Mapping[TopicPartition, PartitionSlices]) -> None:
        self.handler = handler
        self._partitions = partitions
        self.paused = PausedPartitions()
        self.changes: Mapping[str, Any] = {}
        """Options that differ from those that the tasks know."""

    def carry_out(self, command: LiveCommand) -> None:
        if command.action == "pause":
            self.paused.pause(command.partitions)
        elif command.action == "resume":
            self.paused.resume(command.partitions)
        else:
            self.handler = changed_handler(command, self.handler)
            # Not those of the command, which may be texts, such as rate=none.
            self.changes = {**self.changes, **{name: getattr(self.handler, name) for name in command.changes}}

    @property
    def state(self) -> HandlerState:
        return HandlerState(
            handler=self.handler.name,
            group=self.handler.group,
            paused=self.paused.covers_all,
            paused_partitions=tuple(sorted(self.paused.partitions)),
            partitions=tuple(sorted(self._partitions)),
            concurrency=self.handler.largest_concurrency,
        )


class SparkControl(NoControl):
    """Takes the commands for an app; it has the controls of the handlers once they have drivers."""

    def __init__(self, app: App, emit: Callable[[Event], None]) -> None:
        super().__init__(*NO_PROGRESS)
        self._pipelines = [pipeline.name for pipeline in app.pipelines]
        self._emit = emit
        self.handlers: Sequence[DriverControl] = ()

    def states(self) -> list[HandlerState]:
        return [each.state for each in self.handlers]

    def command(self, command: LiveCommand) -> list[HandlerState]:
        if self._pipelines and (command.handler in self._pipelines or not self.handlers):
            raise StateError(
                f"{command.handler or self._pipelines[0]} is a pipeline. Spark runs it as a query, which takes no "
                "commands.",
                hint="Stop the app, and start it again later: it continues at its checkpoint.",
            )
        if not self.handlers:
            raise StateError("The app has not started its handlers yet.", hint="Try again in a moment.")
        found = addressed(command, self.handlers)
        for each in found:
            refuse_unsupported(changed_handler(command, each.handler), "spark")
        for each in found:
            each.carry_out(command)
            self._emit(commanded(command, each.handler, at=time.time()))
        return [each.state for each in found]
