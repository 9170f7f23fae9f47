"""The local engine: one process, real parallelism, nothing lost."""

from penstock.engine.health import HealthBoard
from penstock.engine.running import run

__all__ = ["HealthBoard", "run"]
