"""The options that say what a handler consumes, how it decodes records and where its output goes."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypedDict

from penstock.app.options.consume_options import Start
from penstock.app.options.option_support import HandlerOption, Refused
from penstock.app.options.reasons import SHARE_ASSIGNS_ITSELF, SHARE_HAS_NO_OFFSETS
from penstock.core.records.record import TopicPartition

Mode = Literal["group", "share"]

_NAMED_TOPICS_IN_TESTS = "a bench has only the topics and partitions that its test names"

TOPICS = HandlerOption(
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
            share=Refused(SHARE_ASSIGNS_ITSELF),
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
            share=Refused(SHARE_HAS_NO_OFFSETS),
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
            of_route=True,
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
            of_route=True,
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
            of_route=True,
            text="How to decode the values of headers, as for ``value``, or a mapping from header names to decoders. A "
            "parameter named ``headers`` gets them as a dict.",
            shown_default="by type hint",
            see="[Decoding](decoding.md)",
        ),
    ]
    to: Annotated[
        str | Sequence[str] | None,
        HandlerOption(
            default=None,
            of_route=True,
            text="The topic for the handler's output, or a list of topics, of which the first gets the outputs that "
            "do not name their topic with ``Out(to=...)``. An output keeps the key of its record unless an ``Out`` "
            "changes it.",
            see="[Outputs](outputs.md)",
        ),
    ]
    to_value: Annotated[
        Any,
        HandlerOption(
            default=None,
            of_route=True,
            text="How to encode the return value: ``Avro(...)``, ``JsonSchema(...)``, ``Protobuf(...)``, a function to "
            "bytes, or an object with ``encode``.",
            shown_default="by its type",
            see="[Decoding](decoding.md)",
        ),
    ]
    carry_headers: Annotated[
        bool | Sequence[str],
        HandlerOption(
            default=False,
            of_route=True,
            text="Copy the record's headers to its outputs: ``True`` for all, or a list of names.",
            see="[Outputs](outputs.md)",
        ),
    ]
