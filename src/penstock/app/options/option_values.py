"""From the options that the user gave to the values of a ``Handler``: defaults that depend on others, and units."""

import os
from collections.abc import Mapping
from typing import Any

from penstock.app.options import SETTINGS, Delivery, Scale, WorkerKind
from penstock.app.options.consume_options import one_or_several
from penstock.core.failures.retry import DEFAULT_RETRY, NO_RETRY, Retry
from penstock.core.failures.retry_topic import checked_durations
from penstock.core.scheduling.lanes import Order
from penstock.core.text.durations import Duration, seconds

# Enough for handlers that wait for a database or a service, and few enough threads to cost little.
_CONCURRENCY = 32
_COMMIT_EVERY: Duration = "1s"
# Consumers of the outputs wait for the commit of the transaction.
_COMMIT_EVERY_EXACTLY_ONCE: Duration = "100ms"


def handler_values(given: Mapping[str, Any], *, app: str, app_settings: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a ``Handler`` that are options, from a value for every option (``with_defaults``)."""
    delivery = given["delivery"]
    values = {
        "topics": tuple(given["topics"]),
        "partitions": tuple(given["partitions"]),
        "group": given["group"] or app,
        "retry": _or_default(given["retry"], _default_retry(delivery)),
        "retry_topics": checked_durations(given["retry_topics"]),
        "order": _or_default(given["order"], _default_order(given)),
        "concurrency": _or_default(given["concurrency"], _default_concurrency(given["workers"], given["scale"])),
        "to": one_or_several(given["to"]),
        "carry_headers": _names(given["carry_headers"]),
        "assignor": one_or_several(given["assignor"]),
        "commit_every": _or_default(given["commit_every"], _default_commit_every(delivery)),
        "timeout": None if given["timeout"] is None else seconds(given["timeout"], name="timeout"),
        SETTINGS: {**app_settings, **(given[SETTINGS] or {})},
    }
    complete = {**given, **values}
    durations = ("linger", "commit_every", "drain_timeout", "micro_batch")
    return {**complete, **{name: seconds(complete[name], name=name) for name in durations}}


def _names(value: Any) -> Any:
    """A list as a tuple, because a handler does not change."""
    return tuple(value) if isinstance(value, list) else value


def _or_default(value: Any, default: Any) -> Any:
    return default if value is None else value


def _default_order(given: Mapping[str, Any]) -> Order:
    """By partition, as Kafka delivers; by key if the user asks for what one partition in order has no use for."""
    if given["mode"] == "share":
        return "none"
    if given["scale"] == "cpu" or given["fair_by"] is not None or given["priority"] is not None:
        return "key"
    concurrency = given["concurrency"]
    asks = given["workers"] == "process" if concurrency is None else concurrency != 1
    return "key" if asks else "partition"


def _default_concurrency(workers: WorkerKind, scale: Scale) -> int:
    if scale == "cpu":  # each Spark task has a core of its own, and Python computes on one core at a time
        return 1
    return os.cpu_count() or 1 if workers == "process" else _CONCURRENCY


def _default_retry(delivery: Delivery) -> Retry:
    return NO_RETRY if delivery == "at-most-once" else DEFAULT_RETRY


def _default_commit_every(delivery: Delivery) -> Duration:
    return _COMMIT_EVERY_EXACTLY_ONCE if delivery == "exactly-once" else _COMMIT_EVERY
