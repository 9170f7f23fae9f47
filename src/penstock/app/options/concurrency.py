"""The options for order, concurrency and limits, and those of Spark's slices."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypedDict

from penstock.app.options.option_support import HandlerOption, Ignored, Refused
from penstock.core.failures.restarts import DEFAULT_RESTART
from penstock.core.failures.retry import Retry
from penstock.core.records.record import Record
from penstock.core.records.record_ids import RecordId
from penstock.core.scheduling.in_flight import DEFAULT_BYTES
from penstock.core.scheduling.lanes import Order
from penstock.core.scheduling.rate import Rate
from penstock.core.text.durations import Duration

Scale = Literal["partition", "cpu"]
WorkerKind = Literal["auto", "process"]
Concurrency = int | Literal["auto"]
RawField = RecordId | Callable[[Record], Any]
"""A header, the key, or a part of it (``by``); or a function of the record."""

_BROKER_CHOOSES = Refused("the broker chooses which records of a share group are next")
_ONLY_ON_SPARK = Ignored("only Spark divides partitions into slices")


class OrderOptions(TypedDict, total=False):
    """Order and concurrency."""

    order: Annotated[
        Order | None,
        HandlerOption(
            default=None,
            text='Which records run one at a time and in order: those of a ``"partition"``, those of a ``"key"`` (many '
            'keys of one partition run at once; records without a key run in any order), or none (``"none"``).',
            shown_default='`"partition"`; with `concurrency`, `workers="process"`, `scale="cpu"`, `fair_by` or '
            '`priority` it is `"key"`, and with `mode="share"` `"none"`',
            see="[Order and parallelism](#order-and-parallelism)",
        ),
    ]
    null_keys_in_order: Annotated[
        bool,
        HandlerOption(
            default=False,
            text='With ``order="key"``: whether the records without a key also run in order.',
            share=Ignored("a share group has no order"),
        ),
    ]
    concurrency: Annotated[
        Concurrency | None,
        HandlerOption(
            default=None,
            text="How many records (with ``batch``: batches) run at once, for any number of partitions. On Spark this "
            'is per task. ``"auto"`` finds the number, from how long records take and how many fail.',
            shown_default='32; with `workers="process"` the number of cores; with `scale="cpu"` 1',
        ),
    ]
    max_concurrency: Annotated[
        int,
        HandlerOption(
            default=256,
            text='The largest number for ``concurrency="auto"``. With ``workers="process"`` it is at most the number '
            "of cores.",
            see="[Limits](limits.md#concurrency-that-tunes-itself)",
            share=Ignored('it needs ``concurrency="auto"``, which share groups do not have'),
        ),
    ]
    fair_by: Annotated[
        RawField | None,
        HandlerOption(
            default=None,
            text='Tenants take turns: ``by.header("tenant")``, ``by.key(before=":")``, or a function of the undecoded '
            "record. Each tenant gets the same share of what runs, so one with many records does not delay the others.",
            see="[Limits](limits.md#fair-turns)",
            share=_BROKER_CHOOSES,
        ),
    ]
    weights: Annotated[
        Mapping[str, float],
        HandlerOption(
            default={},
            text='Larger or smaller shares for some tenants, such as ``{"gold": 3, "free": 0.5}``; others have 1.',
            shown_default="equal shares",
            see="[Limits](limits.md#fair-turns)",
            share=_BROKER_CHOOSES,
        ),
    ]
    priority: Annotated[
        RawField | None,
        HandlerOption(
            default=None,
            text='Higher priorities run first: ``by.header("priority")`` or a function of the record, with an integer '
            'from -9 to 9 or "low", "normal" (0) or "high". Every tenth record is one of a lower priority.',
            see="[Limits](limits.md#priorities)",
            share=_BROKER_CHOOSES,
        ),
    ]
    workers: Annotated[
        WorkerKind,
        HandlerOption(
            default="auto",
            text='``"process"`` runs a ``def`` handler in worker processes, for handlers that compute. ``"auto"`` runs '
            "``def`` on threads and ``async def`` on one event loop.",
            see="[Handlers that compute](#handlers-that-compute)",
            spark=Refused(
                "its tasks are processes already",
                hint='Use scale="cpu" with order="key" or "none" to compute on all cores, or run it with --engine '
                "local.",
            ),
            testing=Ignored("a bench runs all handlers in the process of the test"),
            share=Refused("share groups run handlers on threads or on an event loop"),
        ),
    ]
    batch: Annotated[
        int | None,
        HandlerOption(
            default=None,
            text='Call the handler with lists of up to this many records. It returns None for "all done", or a list '
            "with a result, None or an exception for each record.",
            see="[Batches](#batches)",
            share=Refused("a share group hands out records one by one"),
        ),
    ]
    linger: Annotated[
        Duration,
        HandlerOption(
            default="50ms",
            text="How long an incomplete batch waits for more records.",
            share=Ignored("a share group has no batches"),
        ),
    ]


class LimitOptions(TypedDict, total=False):
    """Limits."""

    rate: Annotated[
        Rate | None,
        HandlerOption(
            default=None,
            text='How many calls of the handler begin in a time, such as ``Rate(100, per="1s")``; with ``by=`` for '
            "each tenant.",
            see="[Limits](limits.md#rates)",
            spark=Refused(
                "its tasks do not know of each other's calls",
                hint="Run it with --engine local, or leave rate= out.",
            ),
            share=Refused(
                "the broker gives it records with a time limit, and gives those that wait for longer to others"
            ),
        ),
    ]
    max_in_flight: Annotated[
        int,
        HandlerOption(
            default=10_000,
            text="How many records may be fetched and unfinished; at this number, fetching pauses. On Spark this is "
            "per task.",
        ),
    ]
    max_in_flight_bytes: Annotated[
        int,
        HandlerOption(
            default=DEFAULT_BYTES,
            text="How many bytes the values of these records may have, including what the client has prefetched. A "
            "value that is larger is handled alone. On Spark this is per task.",
            see="[Memory](#memory)",
            share=Ignored("one poll of a share group fetches at most ``concurrency`` records"),
        ),
    ]
    drain_timeout: Annotated[
        Duration,
        HandlerOption(
            default="30s",
            text="How long a stop or a rebalance waits for records in progress.",
        ),
    ]


class SparkOptions(TypedDict, total=False):
    """Only on Spark."""

    scale: Annotated[
        Scale,
        HandlerOption(
            default="partition",
            text='``"partition"`` gives each slice of a partition to one task. ``"cpu"`` gives it to several tasks, '
            "each of which reads it and handles its share of the keys, for handlers that compute; it needs "
            '``order="key"`` or ``"none"``.',
            see="[Handlers on Spark](spark.md)",
            local=Refused(
                "only Spark distributes keys over tasks",
                hint='Use workers="process" to compute on all cores of this machine, or run it with --engine spark.',
            ),
            testing=Ignored("a bench runs all handlers in the process of the test"),
        ),
    ]
    micro_batch: Annotated[
        Duration,
        HandlerOption(
            default="10s",
            text="How long a slice of a partition may take: after that, its task starts no further record. If there "
            "are more partitions than tasks, slices are shorter.",
            local=_ONLY_ON_SPARK,
            testing=_ONLY_ON_SPARK,
        ),
    ]
    max_micro_batch: Annotated[
        int,
        HandlerOption(
            default=1_000_000,
            text="How many records a slice may have.",
            local=_ONLY_ON_SPARK,
            testing=_ONLY_ON_SPARK,
        ),
    ]
    restart: Annotated[
        Retry,
        HandlerOption(
            default=DEFAULT_RESTART,
            text="When a failed slice, or the failed query of a pipeline, starts again. A finished slice of the "
            "partition resets the count; after the last attempt the app stops.",
            shown_default='`Retry(attempts=10, first="1s", limit="1m")`',
            local=Ignored("the local engine reconnects without a restart"),
            testing=Ignored("a bench has no slices to restart"),
        ),
    ]
