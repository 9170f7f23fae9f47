"""The local engine: one process, real parallelism, nothing lost."""

from penstock.engine.local_runner import run
from penstock.engine.observe.health import HealthBoard

__all__ = ["HealthBoard", "run"]
