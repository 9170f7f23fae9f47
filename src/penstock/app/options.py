"""The options of ``App.consume``, each declared once: type, default, group, description, and support by engine.

Everything else about options follows from this table: the signature and the help of ``App.consume``, the check of
unknown names, what each engine refuses, what a file, a variable or a flag may say, and the tables in the docs.
To add an option, add it here and as a field of ``Handler``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, get_args, get_type_hints

from penstock.app.consume_options import OnPartitions, Protocol, Start
from penstock.app.offset_store import OffsetStore
from penstock.app.option_support import (
    ENGINE_HINTS,
    ENGINE_NAMES,
    Engine,
    HandlerOption,
    Ignored,
    Refused,
)
from penstock.assign import Assignor
from penstock.core.failures.breaker import Breaker
from penstock.core.failures.restarts import DEFAULT_RESTART
from penstock.core.failures.retry import Retry, RetryPolicy
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.in_flight import DEFAULT_BYTES
from penstock.core.scheduling.lanes import Order
from penstock.core.text.durations import Duration
from penstock.core.text.suggestions import suggestion
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.app.handler import Handler

CommitMode = Literal["auto", "record", "manual"]
Delivery = Literal["at-least-once", "at-most-once", "exactly-once"]
Mode = Literal["group", "share"]
Scale = Literal["partition", "cpu"]
WorkerKind = Literal["auto", "process"]

SETTINGS = "settings"

# Reasons that several options share.
_SPARK_IS_NO_MEMBER = "Spark is not a member of the consumer group"
_SPARK_COMMITS_BATCHES = "Spark commits a micro-batch as a whole"
_ONLY_ON_SPARK = Ignored("only Spark divides the records into micro-batches")
_ONE_MEMBER_IN_TESTS = Ignored("a bench runs one member for each handler, and assigns its partitions")
_NAMED_TOPICS_IN_TESTS = "a bench has only the topics and partitions that its test names"
_SHARE_HAS_NO_OFFSETS = "the broker tracks each record of a share group and keeps no offsets"
_SHARE_ASSIGNS_ITSELF = "the broker assigns the partitions of a share group, each to several members"
_SHARE_ACKNOWLEDGES = "Penstock acknowledges each record of a share group"

_TOPICS = HandlerOption(
    default=(),
    text="The topics to consume. Use only one of topics, ``pattern`` and ``partitions``.",
    name="topics",
    hint=str,
    group="What to consume",
)


class SourceOptions(TypedDict, total=False):
    """What to consume."""

    pattern: Annotated[
        str | None,
        HandlerOption(
            default=None,
            text="Consume every topic whose whole name matches this regular expression. The handler also gets topics "
            "that are created later.",
            see="[Consuming](consuming.md)",
            testing=Refused(_NAMED_TOPICS_IN_TESTS),
            share=Refused("a share group subscribes to topics by name"),
        ),
    ]
    partitions: Annotated[
        Sequence[TopicPartition],
        HandlerOption(
            default=(),
            text='Consume exactly these partitions, such as ``[("orders", 0)]``. The group assigns nothing then, but '
            "still keeps the offsets.",
            see="[Consuming](consuming.md)",
            testing=Refused(_NAMED_TOPICS_IN_TESTS),
            share=Refused(_SHARE_ASSIGNS_ITSELF),
        ),
    ]
    start: Annotated[
        Start,
        HandlerOption(
            default="earliest",
            text="Where to start a partition that has no committed offset, or whose committed offset is no longer in "
            'the log: ``"earliest"``, ``"latest"``, a datetime with a time zone, or offsets '
            '(``{("orders", 0): 42}``; partitions without an offset start at the earliest).',
            see="[Consuming](consuming.md)",
            testing=Refused('a bench starts partitions at "earliest" or "latest"', allowed=("latest",)),
            share=Refused(
                "a share group starts at one end of the log",
                hint='Use start="earliest" or start="latest".',
                allowed=("latest",),
            ),
        ),
    ]
    from_: Annotated[
        Start | None,
        HandlerOption(
            default=None,
            text="Overrides the committed offset when a partition is first assigned in this run; takes the same values "
            "as ``start``. Partitions without an offset here keep their committed offset.",
            see="[Consuming](consuming.md)",
            testing=Refused("a bench continues from the committed offsets"),
            share=Refused(_SHARE_HAS_NO_OFFSETS),
        ),
    ]
    group: Annotated[
        str | None,
        HandlerOption(
            default=None,
            text="The consumer group.",
            shown_default="the app's name",
        ),
    ]
    mode: Annotated[
        Mode,
        HandlerOption(
            default="group",
            text='``"share"`` consumes as a share group of Kafka 4.2 or newer: a queue without order, which may have '
            "more consumers than partitions. The Kafka client calls it a preview.",
            see="[Share groups](guarantees.md#share-groups-preview)",
            spark=Refused("Spark reads ranges of offsets, which a share group does not have"),
            testing=Refused("the broker in memory has no share groups"),
        ),
    ]


class DataOptions(TypedDict, total=False):
    """Decoding and output."""

    value: Annotated[
        Any,
        HandlerOption(
            default=None,
            text="How to decode values: a type, ``Avro(...)``, ``JsonSchema(...)``, ``Protobuf(...)``, a function of "
            "bytes, or an object with ``decode``.",
            shown_default="by type hint",
            see="[Decoding](decoding.md)",
        ),
    ]
    key: Annotated[
        Any,
        HandlerOption(
            default=None,
            text="How to decode keys, as for ``value``. A parameter named ``key`` gets the key (with ``batch``: "
            "``keys``).",
            shown_default="by type hint",
            see="[Decoding](decoding.md)",
        ),
    ]
    headers: Annotated[
        Any,
        HandlerOption(
            default=None,
            text="How to decode the values of headers, as for ``value``, or a mapping from header names to decoders. A "
            "parameter named ``headers`` gets them as a dict.",
            shown_default="by type hint",
            see="[Decoding](decoding.md)",
        ),
    ]
    to: Annotated[
        str | None,
        HandlerOption(
            default=None,
            text="The topic for the handler's return value. The output keeps the key of its record.",
        ),
    ]
    to_value: Annotated[
        Any,
        HandlerOption(
            default=None,
            text="How to encode the return value: ``Avro(...)``, ``JsonSchema(...)``, ``Protobuf(...)``, a function to "
            "bytes, or an object with ``encode``.",
            shown_default="by its type",
            see="[Decoding](decoding.md)",
        ),
    ]


class FailureOptions(TypedDict, total=False):
    """Failures."""

    dead_letter: Annotated[
        str | None,
        HandlerOption(
            default=None,
            text="The topic for records that fail for good. Without it, such a record stops the app.",
            see="[Failures](failures.md)",
        ),
    ]
    retry: Annotated[
        RetryPolicy | None,
        HandlerOption(
            default=None,
            text='When to retry a failed record: ``Retry(attempts=3, first="1s", factor=2, limit="1m", jitter=0.2)``, '
            "or a mapping from error types to Retries, of which the nearest base class of the error applies. An error "
            "type without an entry gets ``Retry()``.",
            shown_default="`Retry()`; with at-most-once no retries",
            see="[Failures](failures.md)",
        ),
    ]
    retry_topics: Annotated[
        Sequence[Duration],
        HandlerOption(
            default=(),
            text='Durations such as ``["1m", "10m"]``: a record that has to wait at least the shortest waits in a '
            "topic such as ``orders.retry.10m``, the longest that its wait reaches. There it blocks no other record "
            "and takes no memory.",
            see="[Failures](failures.md)",
            spark=Refused("a micro-batch would have to wait for its slowest record"),
            share=Refused("a failed record of a share group goes back to the broker, which redelivers it at once"),
        ),
    ]
    breaker: Annotated[
        Breaker | None,
        HandlerOption(
            default=None,
            text="``Breaker(share=0.9, window=1000)`` stops the app when nearly all records become dead letters.",
            see="[Failures](failures.md)",
            share=Refused("Penstock does not count the dead letters of a share group"),
        ),
    ]


class DeliveryOptions(TypedDict, total=False):
    """Delivery and commits."""

    delivery: Annotated[
        Delivery,
        HandlerOption(
            default="at-least-once",
            text='``"exactly-once"``: consumers with ``isolation.level=read_committed`` see each output and each dead '
            'letter once. ``"at-most-once"``: each record is committed before it is handled, so that none is handled '
            "twice and a crash loses the records in progress.",
            see="[Guarantees](guarantees.md)",
            spark=Refused("Spark commits a micro-batch after it is handled", allowed=("exactly-once",)),
            testing=Refused("the broker in memory has no transactions", allowed=("at-most-once",)),
            share=Refused("the broker redelivers a record of a share group until it is acknowledged"),
        ),
    ]
    commit: Annotated[
        CommitMode,
        HandlerOption(
            default="auto",
            text='``"auto"`` commits every ``commit_every``; ``"record"`` as soon as a record is finished. With '
            '``"manual"`` a record is finished when you call ``record.ack()``, in the handler or later.',
            see="[Guarantees](guarantees.md)",
            spark=Refused(_SPARK_COMMITS_BATCHES, allowed=("record",)),
            share=Refused(_SHARE_ACKNOWLEDGES),
        ),
    ]
    commit_every: Annotated[
        Duration | None,
        HandlerOption(
            default=None,
            text="How often to commit finished records.",
            shown_default='`"1s"`; with exactly-once `"100ms"`',
            spark=Ignored(_SPARK_COMMITS_BATCHES),
            share=Ignored(_SHARE_ACKNOWLEDGES),
        ),
    ]
    commit_after: Annotated[
        int | None,
        HandlerOption(
            default=None,
            text="Commit also after this many finished records.",
            spark=Ignored(_SPARK_COMMITS_BATCHES),
            share=Refused(_SHARE_ACKNOWLEDGES),
        ),
    ]
    offsets: Annotated[
        str | OffsetStore | None,
        HandlerOption(
            default=None,
            text='Keep progress in ``"postgresql://..."``, ``"sqlite:///path"``, ``"file:path"`` or an object of '
            "``penstock.stores.OffsetStore``; Kafka's offsets follow. With a database, a parameter named ``tx`` gets "
            "its open transaction, which commits the handler's writes together with the progress of its record.",
            see="[Progress in your database](guarantees.md#progress-in-your-database)",
            spark=Refused("Spark keeps progress in its checkpoint and in Kafka"),
            testing=Refused("a bench keeps progress in the broker in memory"),
            share=Refused(_SHARE_HAS_NO_OFFSETS),
        ),
    ]


class OrderOptions(TypedDict, total=False):
    """Order and concurrency."""

    order: Annotated[
        Order,
        HandlerOption(
            default="partition",
            text='Which records run one at a time and in order: those of a ``"partition"``, those of a ``"key"`` (many '
            'keys of one partition run at once), or none (``"none"``).',
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
        int | None,
        HandlerOption(
            default=None,
            text="How many records (with ``batch``: batches) run at once, for any number of partitions. On Spark this "
            "is per task.",
            shown_default='32; with `workers="process"` the number of cores; with `scale="cpu"` 1',
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


class MembershipOptions(TypedDict, total=False):
    """Membership of the group."""

    members: Annotated[
        int,
        HandlerOption(
            default=1,
            text="How many members of the group run in this process, each with its own ``concurrency``.",
            spark=Ignored(_SPARK_IS_NO_MEMBER),
            testing=_ONE_MEMBER_IN_TESTS,
        ),
    ]
    protocol: Annotated[
        Protocol,
        HandlerOption(
            default="classic",
            text='The group protocol: ``"classic"``, or ``"consumer"``, Kafka 4\'s new one, in which the broker '
            "assigns the partitions.",
            see="[Consuming](consuming.md)",
            spark=Ignored(_SPARK_IS_NO_MEMBER),
            testing=_ONE_MEMBER_IN_TESTS,
            share=Refused("a share group has a protocol of its own"),
        ),
    ]
    assignor: Annotated[
        str | Assignor | Sequence[str | Assignor] | None,
        HandlerOption(
            default=None,
            text='``"cooperative-sticky"``, ``"range"`` or ``"roundrobin"``; with ``protocol="consumer"`` '
            '``"uniform"`` or ``"range"``. Any other assignor of ``penstock.assign``, one of your own, or a list in '
            "the order in which this member votes, makes it a self-managed member: Penstock itself talks to the group "
            "coordinator.",
            shown_default='`"cooperative-sticky"`; the broker\'s with `protocol="consumer"`',
            see="[Assignment](assignment.md)",
            spark=Ignored(_SPARK_IS_NO_MEMBER),
            testing=_ONE_MEMBER_IN_TESTS,
            share=Refused(_SHARE_ASSIGNS_ITSELF),
        ),
    ]
    static_id: Annotated[
        str | None,
        HandlerOption(
            default=None,
            text="A name that this member keeps over restarts (``group.instance.id``): if it returns within the "
            "session timeout, it gets its partitions back without a rebalance. With ``members`` each gets ``-0``, "
            "``-1`` and so on.",
            see="[Consuming](consuming.md)",
            spark=Ignored(_SPARK_IS_NO_MEMBER),
            testing=_ONE_MEMBER_IN_TESTS,
            share=Refused("share groups have no static members"),
        ),
    ]
    rack: Annotated[
        str | None,
        HandlerOption(
            default=None,
            text="The rack of this process (``client.rack``). The client then fetches from replicas in the same rack "
            "where the brokers allow it.",
            see="[Consuming](consuming.md)",
            spark=Ignored(_SPARK_IS_NO_MEMBER),
            testing=_ONE_MEMBER_IN_TESTS,
            share=Ignored("share groups fetch from the leaders of partitions"),
        ),
    ]
    on_assigned: Annotated[
        OnPartitions | None,
        HandlerOption(
            default=None,
            text="A plain function that gets a list of ``(topic, partition)`` before the first record of these "
            "partitions is handled. It runs on the fetching thread, so the member waits for it; if it raises, the app "
            "stops.",
            see="[Consuming](consuming.md)",
            spark=Refused(_SPARK_IS_NO_MEMBER),
            share=Refused(_SHARE_ASSIGNS_ITSELF),
        ),
    ]
    on_revoked: Annotated[
        OnPartitions | None,
        HandlerOption(
            default=None,
            text="Like ``on_assigned``, called when the records of revoked partitions are finished and committed, "
            "before other members get the partitions.",
            see="[Consuming](consuming.md)",
            spark=Refused(_SPARK_IS_NO_MEMBER),
            share=Refused(_SHARE_ASSIGNS_ITSELF),
        ),
    ]
    on_lost: Annotated[
        OnPartitions | None,
        HandlerOption(
            default=None,
            text="Like ``on_assigned``, called when the group has taken partitions away without a revocation: other "
            "members may own them already.",
            see="[Consuming](consuming.md)",
            spark=Refused(_SPARK_IS_NO_MEMBER),
            share=Refused(_SHARE_ASSIGNS_ITSELF),
        ),
    ]


class LimitOptions(TypedDict, total=False):
    """Limits."""

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
            "value that is larger is handled alone.",
            see="[Memory](#memory)",
            spark=Refused("Spark holds a whole Arrow batch in memory, whatever a task has taken from it"),
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
            text='``"partition"`` makes one task for each partition. ``"cpu"`` distributes the keys of all partitions '
            'over all cores, for handlers that compute; it shuffles each micro-batch and needs ``order="key"`` or '
            '``"none"``.',
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
            text="How long a micro-batch should take. Its size follows from that, and starts with ``max_in_flight`` "
            "records.",
            local=_ONLY_ON_SPARK,
            testing=_ONLY_ON_SPARK,
        ),
    ]
    max_micro_batch: Annotated[
        int,
        HandlerOption(
            default=1_000_000,
            text="How many records a micro-batch may have.",
            local=_ONLY_ON_SPARK,
            testing=_ONLY_ON_SPARK,
        ),
    ]
    restart: Annotated[
        Retry,
        HandlerOption(
            default=DEFAULT_RESTART,
            text="When a failed query starts again. A finished micro-batch resets the count; after the last attempt "
            "the app stops.",
            shown_default='`Retry(attempts=10, first="1s", limit="1m")`',
            local=Ignored("the local engine reconnects without a restart"),
            testing=Ignored("a bench has no query to restart"),
        ),
    ]


class ClientOptions(TypedDict, total=False):
    """Tracing and client settings."""

    tracing: Annotated[
        bool,
        HandlerOption(
            default=False,
            text="Make an OpenTelemetry span for each attempt. It continues the trace in the record's headers, and "
            "outputs and dead letters carry the trace on.",
            see="[Traces](metrics.md#traces)",
        ),
    ]
    settings: Annotated[
        Mapping[str, Any] | None,
        HandlerOption(
            default=None,
            text="Kafka client settings by their Kafka names; they override the app's. ``client.id`` is the app and "
            "the handler (``shop-invoice``) unless you set it.",
            see="[Settings](settings.md)",
            testing=Ignored("a bench has no Kafka client"),
        ),
    ]


class ConsumeOptions(
    SourceOptions,
    DataOptions,
    FailureOptions,
    DeliveryOptions,
    OrderOptions,
    MembershipOptions,
    LimitOptions,
    SparkOptions,
    ClientOptions,
    total=False,
):
    """The keyword options of ``App.consume``."""


OPTION_GROUPS: Mapping[str, type] = {
    "What to consume": SourceOptions,
    "Decoding and output": DataOptions,
    "Failures": FailureOptions,
    "Delivery and commits": DeliveryOptions,
    "Order and concurrency": OrderOptions,
    "Membership of the group": MembershipOptions,
    "Limits": LimitOptions,
    "Only on Spark": SparkOptions,
    "Tracing and client settings": ClientOptions,
}


def _table() -> dict[str, HandlerOption]:
    found = {"topics": _TOPICS}
    for group, declared in OPTION_GROUPS.items():
        for name, hint in get_type_hints(declared, include_extras=True).items():
            kind, option = get_args(hint)
            found[name] = replace(option, name=name, hint=kind, group=group)
    return found


HANDLER_OPTIONS: Mapping[str, HandlerOption] = _table()
"""Every option by its name, the positional ``topics`` first."""


def with_defaults(topics: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """A value for every option. A name that is no option is an error that suggests the nearest."""
    refuse_unknown(given, [name for name in HANDLER_OPTIONS if name != "topics"], of="@app.consume")
    return {**{name: option.default for name, option in HANDLER_OPTIONS.items()}, "topics": topics, **given}


def refuse_unknown(given: Mapping[str, Any], known: Sequence[str], *, of: str) -> None:
    """Python's own TypeError would not suggest the name that was meant."""
    for name in given:
        if name not in known:
            raise ConfigError(f"{of} has no option {name!r}.", hint=suggestion(name, known))


def refuse_unsupported(handler: "Handler", engine: Engine) -> None:
    """Raise an error for the first option of the handler that this engine does not support.

    The engines call it before they start: an option that is silently ignored would break what it promises.
    """
    for option in HANDLER_OPTIONS.values():
        value = getattr(handler, option.name)
        refused = option.refusal(value, engine)
        if refused is not None:
            raise ConfigError(
                f"Handler {handler.name} uses {option.written(value)}, which {ENGINE_NAMES[engine]} does not support: "
                f"{refused.reason}.",
                hint=refused.hint or ENGINE_HINTS[engine],
            )
