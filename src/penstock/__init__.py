"""Reliable, massively parallel Kafka consumption for Python, from one process to a Spark cluster."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from penstock._version import __version__

if TYPE_CHECKING:
    from penstock.app import App, BatchId, Console, ForeachBatch, Jdbc, Maintenance, Source, Table, Topic
    from penstock.app.out import Out
    from penstock.app.runs.replay_options import Replay
    from penstock.core.failures.breaker import Breaker
    from penstock.core.failures.later import Later
    from penstock.core.failures.outcome import Reject, Skip
    from penstock.core.failures.retry import NO_RETRY, Retry
    from penstock.core.records.record import Record
    from penstock.core.records.record_ids import by
    from penstock.core.routing.conditions import key_like
    from penstock.core.scheduling.rate import Rate
    from penstock.core.settings import Registry
    from penstock.errors import HandlerBug, PenstockError
    from penstock.kafka.client.producer import Producer
    from penstock.serde import Avro, JsonSchema, Protobuf, Reference

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
    "Rate",
    "Record",
    "Reference",
    "Registry",
    "Reject",
    "Replay",
    "Retry",
    "Skip",
    "Source",
    "Table",
    "Topic",
    "__version__",
    "by",
    "key_like",
]

# Where each name is. It is loaded when it is first used: a command such as `penstock lag` needs no `App`, and an app
# that only declares handlers does not need Kafka's client.
_HOMES = {
    **dict.fromkeys(
        ("App", "BatchId", "Console", "ForeachBatch", "Jdbc", "Maintenance", "Source", "Table", "Topic"), "penstock.app"
    ),
    "Out": "penstock.app.out",
    "Replay": "penstock.app.runs.replay_options",
    "Breaker": "penstock.core.failures.breaker",
    "Later": "penstock.core.failures.later",
    **dict.fromkeys(("Reject", "Skip"), "penstock.core.failures.outcome"),
    **dict.fromkeys(("NO_RETRY", "Retry"), "penstock.core.failures.retry"),
    "Record": "penstock.core.records.record",
    "by": "penstock.core.records.record_ids",
    "key_like": "penstock.core.routing.conditions",
    "Rate": "penstock.core.scheduling.rate",
    "Registry": "penstock.core.settings",
    **dict.fromkeys(("HandlerBug", "PenstockError"), "penstock.errors"),
    "Producer": "penstock.kafka.client.producer",
    **dict.fromkeys(("Avro", "JsonSchema", "Protobuf", "Reference"), "penstock.serde"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
