"""Reliable, massively parallel Kafka consumption for Python, from one process to a Spark cluster."""

from penstock._version import __version__
from penstock.app import App
from penstock.core.breaker import Breaker
from penstock.core.outcome import Reject, Skip
from penstock.core.record import Record
from penstock.core.retry import NO_RETRY, Retry
from penstock.errors import PenstockError

__all__ = ["NO_RETRY", "App", "Breaker", "PenstockError", "Record", "Reject", "Retry", "Skip", "__version__"]
