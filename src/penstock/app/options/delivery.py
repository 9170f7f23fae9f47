"""The options for failures, guarantees and commits."""

from collections.abc import Sequence
from typing import Annotated, Literal, TypedDict

from penstock.app.offset_store import OffsetStore
from penstock.app.options.option_support import HandlerOption, Ignored, Refused
from penstock.app.options.reasons import SHARE_HAS_NO_OFFSETS
from penstock.core.failures.breaker import Breaker
from penstock.core.failures.retry import RetryPolicy
from penstock.core.records.record_ids import RecordId
from penstock.core.text.durations import Duration

CommitMode = Literal["auto", "record", "manual"]
Delivery = Literal["at-least-once", "at-most-once", "exactly-once"]

_SPARK_COMMITS_SLICES = "Spark commits when a slice is finished"
_SHARE_ACKNOWLEDGES = "Penstock acknowledges each record of a share group"


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
            of_route=True,
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
            share=Refused("a failed record of a share group goes back to the broker, which redelivers it at once"),
        ),
    ]
    breaker: Annotated[
        Breaker | None,
        HandlerOption(
            default=None,
            text="``Breaker(share=0.9, window=1000)`` stops the app when nearly all records become dead letters. With "
            '``then="pause"`` it waits instead until what the handler calls works again.',
            see="[Breaker](failures.md#breaker)",
            share=Refused("Penstock does not count the dead letters of a share group"),
        ),
    ]


class TimeOptions(TypedDict, total=False):
    """Time."""

    timeout: Annotated[
        Duration | None,
        HandlerOption(
            default=None,
            text='The longest time for one call of the handler, such as ``"30s"``; after it the attempt fails with a '
            "TimeoutError. An ``async def`` handler is cancelled, a worker process is killed and replaced. A ``def`` "
            "handler on a thread cannot be ended: it is reported, its lane waits for it, and its result is dropped.",
            shown_default="no limit",
            see="[Time limits](failures.md#time-limits)",
        ),
    ]
    honor_times: Annotated[
        bool,
        HandlerOption(
            default=False,
            text="Whether records that ``Producer.send(..., not_before=, expires=)`` has written wait for their time, "
            "and are finished without a call once they have expired.",
            see="[Times that producers set](failures.md#times-that-producers-set)",
            share=Refused("a record of a share group cannot wait: its lock expires"),
        ),
    ]
    dedupe: Annotated[
        RecordId | None,
        HandlerOption(
            default=None,
            of_route=True,
            text='``by("id", for_="1d")``: a record whose ``id`` was handled in the last day is finished without a '
            "call. ``by.header(...)`` and ``by.key(...)`` take a header or the key. With ``tx``, ids are kept in your "
            "database, in the same transaction; otherwise in a file of this machine.",
            see="[Duplicates](failures.md#duplicates)",
            spark=Refused("its tasks run on any machine, and each would know only its own ids"),
            share=Refused("the broker gives a record of a share group to any member"),
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
            spark=Refused(
                "a task ends when its records are handled, so nobody could acknowledge them later", allowed=("record",)
            ),
            share=Refused(_SHARE_ACKNOWLEDGES),
        ),
    ]
    commit_every: Annotated[
        Duration | None,
        HandlerOption(
            default=None,
            text="How often to commit finished records.",
            shown_default='`"1s"`; with exactly-once `"100ms"`',
            spark=Ignored(_SPARK_COMMITS_SLICES),
            share=Ignored(_SHARE_ACKNOWLEDGES),
        ),
    ]
    commit_after: Annotated[
        int | None,
        HandlerOption(
            default=None,
            text="Commit also after this many finished records.",
            spark=Ignored(_SPARK_COMMITS_SLICES),
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
            spark=Refused("tasks on other machines would have to share the store; Spark keeps progress in Kafka"),
            testing=Refused("a bench keeps progress in the broker in memory"),
            share=Refused(SHARE_HAS_NO_OFFSETS),
        ),
    ]
