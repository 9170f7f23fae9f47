"""The options of the Kafka client: membership of the group, tracing and client settings."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypedDict

from penstock.app.options.consume_options import OnPartitions, Protocol
from penstock.app.options.option_support import HandlerOption, Ignored, Refused
from penstock.app.options.reasons import SHARE_ASSIGNS_ITSELF
from penstock.assign import Assignor

SETTINGS = "settings"

_SPARK_HAS_ONE_MEMBER = Ignored("Spark's driver is the only member, and its tasks share the work")
_ONE_MEMBER_IN_TESTS = Ignored("a bench runs one member for each handler, and assigns its partitions")


class MembershipOptions(TypedDict, total=False):
    """Membership of the group."""

    members: Annotated[
        int,
        HandlerOption(
            default=1,
            text="How many members of the group run in this process, each with its own ``concurrency``.",
            spark=_SPARK_HAS_ONE_MEMBER,
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
            spark=_SPARK_HAS_ONE_MEMBER,
            testing=_ONE_MEMBER_IN_TESTS,
            share=Refused(SHARE_ASSIGNS_ITSELF),
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
            share=Refused(SHARE_ASSIGNS_ITSELF),
        ),
    ]
    on_revoked: Annotated[
        OnPartitions | None,
        HandlerOption(
            default=None,
            text="Like ``on_assigned``, called when the records of revoked partitions are finished and committed, "
            "before other members get the partitions.",
            see="[Consuming](consuming.md)",
            share=Refused(SHARE_ASSIGNS_ITSELF),
        ),
    ]
    on_lost: Annotated[
        OnPartitions | None,
        HandlerOption(
            default=None,
            text="Like ``on_assigned``, called when the group has taken partitions away without a revocation: other "
            "members may own them already.",
            see="[Consuming](consuming.md)",
            share=Refused(SHARE_ASSIGNS_ITSELF),
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
