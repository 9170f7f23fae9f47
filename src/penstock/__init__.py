"""Reliable, massively parallel Kafka consumption for Python, from one process to a Spark cluster."""

from typing import TYPE_CHECKING, Any

from penstock._version import __version__
from penstock.app import App, BatchId, Console, ForeachBatch, Jdbc, Maintenance, Source, Table, Topic
from penstock.app.out import Out
from penstock.core.failures.breaker import Breaker
from penstock.core.failures.later import Later
from penstock.core.failures.outcome import Reject, Skip
from penstock.core.failures.retry import NO_RETRY, Retry
from penstock.core.records.record import Record
from penstock.core.records.record_ids import by
from penstock.core.routing.conditions import key_like
from penstock.core.settings import Registry
from penstock.errors import HandlerBug, PenstockError
from penstock.serde import Avro, JsonSchema, Protobuf, Reference

if TYPE_CHECKING:
    from penstock.kafka.client.producer import Producer

__all__ = [
    "NO_RETRY",
    "App",
    "Avro",
    "BatchId",
    "Breaker",
    "Console",
    "ForeachBatch",
    "HandlerBug",
    "Jdbc",
    "JsonSchema",
    "Later",
    "Maintenance",
    "Out",
    "PenstockError",
    "Producer",
    "Protobuf",
    "Record",
    "Reference",
    "Registry",
    "Reject",
    "Retry",
    "Skip",
    "Source",
    "Table",
    "Topic",
    "__version__",
    "by",
    "key_like",
]


def __getattr__(name: str) -> Any:
    # Kafka's client is loaded by those who use it, not by everybody who declares a handler.
    if name == "Producer":
        from penstock.kafka.client.producer import Producer  # noqa: PLC0415

        return Producer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
