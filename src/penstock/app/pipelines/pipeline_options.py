"""The options of ``App.pipeline``, each declared once: signature, help, ``penstock.toml`` and docs follow from them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Required, TypedDict

from penstock.app.options import SETTINGS, Delivery
from penstock.app.options.option_support import DeclaredOption, declared_options
from penstock.app.pipelines.expectations import UnmetAction
from penstock.app.pipelines.pipeline_source import Source
from penstock.app.pipelines.sinks import Sink
from penstock.core.failures.restarts import DEFAULT_RESTART
from penstock.core.failures.retry import Retry
from penstock.core.text.durations import Duration, seconds

OutputMode = Literal["append", "update", "complete"]
Sinks = str | Sink | Sequence[str | Sink]

_DURATIONS = ("trigger", "micro_batch", "drain_timeout")


class ReadOptions(TypedDict, total=False):
    """What to read."""

    sources: Annotated[
        Mapping[str, str | Sequence[str] | Source] | None,
        DeclaredOption(
            default=None,
            text="A ``Source`` for each parameter of the function, instead of topics.",
            see="[What the function gets](#what-the-function-gets)",
        ),
    ]
    value: Annotated[
        Any,
        DeclaredOption(
            default=bytes,
            text="The type or schema of the values: see ``Source``.",
            shown_default="`bytes`",
            see="[What the function gets](#what-the-function-gets)",
        ),
    ]
    key: Annotated[
        type,
        DeclaredOption(default=bytes, text="``bytes``, or ``str`` for keys that are text.", shown_default="`bytes`"),
    ]
    group: Annotated[
        str | None,
        DeclaredOption(
            default=None,
            text="The consumer group that keeps the offsets. Two pipelines in one group cannot read the same topic.",
            shown_default="the app's name",
        ),
    ]
    start: Annotated[
        Literal["earliest", "latest"],
        DeclaredOption(default="earliest", text="Where to start a partition for which the group has no offset."),
    ]
    dead_letter: Annotated[
        str | None,
        DeclaredOption(
            default=None,
            text="The topic for records whose value does not match ``value``. Without it, such a record stops the "
            "pipeline.",
            see="[Records that cannot be read](#records-that-cannot-be-read)",
        ),
    ]
    expect: Annotated[
        Mapping[str, UnmetAction] | None,
        DeclaredOption(
            default=None,
            text='Conditions in SQL on the rows of the source, such as ``{"amount > 0": "dead_letter"}``, and what '
            'happens to a row that does not meet one: ``"drop"``, ``"dead_letter"`` or ``"fail"``.',
            see="[Expectations](#expectations)",
        ),
    ]


class WriteOptions(TypedDict, total=False):
    """What to write."""

    to: Required[
        Annotated[
            Sinks | Mapping[str, Sinks],
            DeclaredOption(
                default=(),
                text="The sinks of the rows: a topic's name, a ``Topic``, ``Table``, ``Jdbc``, ``ForeachBatch`` or "
                "``Console``; a list to write the same rows to each; a dict if the function returns a dict. Outside of "
                "code, a topic or a list of topics.",
                see="[Sinks](#sinks)",
                read_as=str | list[str],
            ),
        ]
    ]
    output_mode: Annotated[
        OutputMode,
        DeclaredOption(
            default="append",
            text='The rows of an aggregate that Spark writes: ``"append"`` final rows, ``"update"`` rows that changed '
            'in a micro-batch, ``"complete"`` all rows.',
        ),
    ]
    delivery: Annotated[
        Delivery,
        DeclaredOption(
            default="at-least-once",
            text='``"at-least-once"``, where each sink documents what it guarantees; or ``"exactly-once"`` into a '
            "topic, for rows that Spark writes in the task that reads them.",
            see="[Exactly-once into a topic](#exactly-once-into-a-topic)",
        ),
    ]


class PipelineRunOptions(TypedDict, total=False):
    """How to run."""

    trigger: Annotated[
        Duration,
        DeclaredOption(default="200ms", text="How long to wait for more records before the next micro-batch begins."),
    ]
    micro_batch: Annotated[
        Duration,
        DeclaredOption(
            default="10s",
            text="How long a micro-batch should take. Its size follows from that, and starts with 250,000 records.",
        ),
    ]
    max_micro_batch: Annotated[
        int, DeclaredOption(default=1_000_000, text="The most records that a micro-batch may have.")
    ]
    restart: Annotated[
        Retry,
        DeclaredOption(
            default=DEFAULT_RESTART,
            text="When a failed query starts again. A finished micro-batch resets the count.",
            shown_default="10 times, 1 s to 1 min apart",
        ),
    ]
    drain_timeout: Annotated[
        Duration, DeclaredOption(default="30s", text="How long a stop waits for the running micro-batch.")
    ]
    settings: Annotated[
        Mapping[str, Any] | None,
        DeclaredOption(
            default=None,
            text="Kafka client settings by their Kafka names; they override the app's.",
            see="[Settings](settings.md)",
        ),
    ]


class PipelineOptions(ReadOptions, WriteOptions, PipelineRunOptions, total=False):
    """The keyword options of ``App.pipeline``."""


PIPELINE_OPTIONS: Mapping[str, DeclaredOption] = {
    "topics": DeclaredOption(default=(), text="The topics to read, as one DataFrame.", name="topics", hint=str),
    **declared_options(
        {"What to read": ReadOptions, "What to write": WriteOptions, "How to run": PipelineRunOptions}, DeclaredOption
    ),
}
"""Every option by its name, the positional ``topics`` first."""


def pipeline_values(given: Mapping[str, Any], *, app: str, app_settings: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are fields of a ``Pipeline``, with durations in seconds, from a value for every option."""
    others = ("topics", "sources", "value", "key", "expect", "to")
    values = {name: value for name, value in given.items() if name not in others}
    return {
        **values,
        "group": given["group"] or app,
        SETTINGS: {**app_settings, **(given[SETTINGS] or {})},
        **{name: seconds(given[name], name=name) for name in _DURATIONS},
    }
