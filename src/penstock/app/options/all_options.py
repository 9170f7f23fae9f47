"""All options of ``App.consume`` in one table, with the checks that use it."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from penstock.app.options.concurrency import LimitOptions, OrderOptions, SparkOptions
from penstock.app.options.consuming import TOPICS, DataOptions, SourceOptions
from penstock.app.options.delivery import DeliveryOptions, FailureOptions, TimeOptions
from penstock.app.options.group_membership import ClientOptions, MembershipOptions
from penstock.app.options.option_support import (
    ENGINE_HINTS,
    ENGINE_NAMES,
    DeclaredOption,
    Engine,
    HandlerOption,
    declared_options,
)
from penstock.app.options.routes import RouteOptions
from penstock.core.text.suggestions import refuse_unknown
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.app.handler import Handler


class ConsumeOptions(
    SourceOptions,
    RouteOptions,
    DataOptions,
    FailureOptions,
    TimeOptions,
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
    "Routing": RouteOptions,
    "Decoding and output": DataOptions,
    "Failures": FailureOptions,
    "Time": TimeOptions,
    "Delivery and commits": DeliveryOptions,
    "Order and concurrency": OrderOptions,
    "Membership of the group": MembershipOptions,
    "Limits": LimitOptions,
    "Only on Spark": SparkOptions,
    "Tracing and client settings": ClientOptions,
}


HANDLER_OPTIONS: Mapping[str, HandlerOption] = {"topics": TOPICS, **declared_options(OPTION_GROUPS, HandlerOption)}
"""Every option by its name, the positional ``topics`` first."""


def with_defaults(
    options: Mapping[str, DeclaredOption], topics: Sequence[str], given: Mapping[str, Any], *, of: str
) -> dict[str, Any]:
    """A value for every option. A name that is no option is an error that suggests the nearest."""
    refuse_unknown(given, [name for name in options if name != "topics"], of=of)
    if any(map(callable, topics)):
        # Python has given us the function itself. It would never be declared, and never be called.
        raise ConfigError(f"{of} needs the topics in parentheses.", hint=f'Write {of}("orders").')
    return {**{name: option.default for name, option in options.items()}, "topics": topics, **given}


def refuse_unsupported(handler: "Handler", engine: Engine) -> None:
    """Raise an error for the first option of the handler that this engine does not support.

    The engines call it before they start: an option that is silently ignored would break what it promises.
    """
    for route, option in product(handler.routes, HANDLER_OPTIONS.values()):
        value = getattr(route, option.name)
        refused = option.refusal(value, engine)
        if refused is not None:
            raise ConfigError(
                f"Handler {route.name} uses {option.written(value)}, which {ENGINE_NAMES[engine]} does not support: "
                f"{refused.reason}.",
                hint=refused.hint or ENGINE_HINTS[engine],
            )
