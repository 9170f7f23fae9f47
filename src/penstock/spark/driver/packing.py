"""Packs what tasks need to run a handler: the handler itself and the settings of its Kafka clients."""

from pyspark import cloudpickle

from penstock.app import Handler
from penstock.core.settings import Settings
from penstock.errors import ConfigError
from penstock.serde import make_portable
from penstock.spark.session.worker_settings import settings_for_workers
from penstock.spark.tasks.worker_state import TaskPlan


def pack(handler: Handler, brokers: str, *, is_local: bool, per_record: bool) -> bytes:
    """Return the plan for tasks. ``is_local``: they run on this machine and find its files."""
    packed = handler.without_settings()
    for route in packed.routes:
        for hint in (*route.signature.hints.values(), route.value, route.key):
            make_portable(hint)
    settings = Settings(handler.named_settings) if is_local else settings_for_workers(handler.named_settings)
    try:
        found: bytes = cloudpickle.dumps(TaskPlan(packed, brokers, settings, per_record))  # type: ignore[no-untyped-call]
    except Exception as error:
        raise ConfigError(
            f"Handler {handler.name} cannot be sent to Spark's Python workers: {error}.",
            hint="Create what it holds (files, locks, connections) at module level: then each worker creates its own.",
        ) from error
    return found
