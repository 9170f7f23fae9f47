"""All that an app meets on the bench, and that outlives its process."""

from collections.abc import Callable
from dataclasses import dataclass

from penstock.core.events import Event
from penstock.testing.broker import Broker
from penstock.testing.clock import Clock
from penstock.testing.faults import Faults
from penstock.testing.loop import HandDrivenLoop


@dataclass(frozen=True)
class World:
    broker: Broker
    faults: Faults
    clock: Clock
    loop: HandDrivenLoop
    emit: Callable[[Event], None]
