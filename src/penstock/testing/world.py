"""The parts of a bench that outlive the app's process."""

from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.core.reports.events import Event
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
