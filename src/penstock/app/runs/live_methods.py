"""The methods of ``App`` that command it while it runs."""

from collections.abc import Iterable
from typing import Literal, TypedDict, Unpack

from penstock.app.runs.live_command import HandlerState, LiveCommand, user_name
from penstock.app.runs.run_control import ControlSlot
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.rate import Rate


class LiveOptions(TypedDict, total=False):
    """The options that ``App.set`` changes."""

    concurrency: int | Literal["auto"]
    rate: Rate | float | str | None


class LiveMethods:
    """Base of ``App``. Any thread may call these methods while the app runs in this process, also a handler."""

    name: str
    _slot: ControlSlot

    def pause(self, handler: str | None = None, *, partitions: Iterable[TopicPartition] = ()) -> None:
        """Hand out no further record, until ``resume`` or the end of the run.

        Records in progress finish and are committed. The app keeps its partitions and its place in the group, and the
        pause survives rebalances. Without ``handler``, all handlers pause; without ``partitions``, all partitions.
        """
        self._command("pause", handler, partitions)

    def resume(self, handler: str | None = None, *, partitions: Iterable[TopicPartition] = ()) -> None:
        """End the pauses of this handler or of all, or only of these partitions."""
        self._command("resume", handler, partitions)

    def set(self, handler: str | None = None, **options: Unpack[LiveOptions]) -> None:
        """Change options of this handler, or of all, until the end of the run: ``app.set("ship", concurrency=8)``."""
        self.command(LiveCommand(action="set", handler=handler, changes=dict(options), by=user_name(), via="app.set()"))

    def command(self, command: LiveCommand) -> list[HandlerState]:
        """For ``penstock pause`` and others: carry out this command. Returns how the handlers stand then."""
        return self._slot.get(self.name).command(command)

    def live_states(self) -> list[HandlerState]:
        """For ``penstock`` and its dashboard: what commands have changed in each handler."""
        return self._slot.get(self.name).states()

    def _command(
        self, action: Literal["pause", "resume"], handler: str | None, partitions: Iterable[TopicPartition]
    ) -> None:
        via = f"app.{action}()"
        self.command(LiveCommand(action=action, handler=handler, partitions=tuple(partitions), by=user_name(), via=via))
