"""The local engine: one process, real parallelism, nothing lost."""

from penstock.engine.running import run

__all__ = ["run"]
