"""The parts of a bench that outlive the app's process."""

from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.core.reports.events import Event
from penstock.stores.seen_ids import LocalSeenIds
from penstock.testing.clock import Clock
from penstock.testing.faults import Faults
from penstock.testing.hand_driven_loop import HandDrivenLoop
from penstock.testing.memory_broker import Broker


@dataclass(frozen=True)
class World:
    broker: Broker
    faults: Faults
    clock: Clock
    loop: HandDrivenLoop
    emit: Callable[[Event], None]
    outputs: set[str] = field(default_factory=set)
    """The topics that outputs were written to."""
    seen_ids: dict[str, LocalSeenIds] = field(default_factory=dict)
    """By handler: they survive a crash, as the file does."""

    def seen_by(self, handler: str) -> LocalSeenIds:
        if handler not in self.seen_ids:
            self.seen_ids[handler] = LocalSeenIds(":memory:", handler)
        return self.seen_ids[handler]
