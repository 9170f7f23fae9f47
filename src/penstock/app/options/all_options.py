"""All options of ``App.consume`` in one table, with the checks that use it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from penstock.app.option_support import ENGINE_HINTS, ENGINE_NAMES, Engine, HandlerOption
from penstock.app.options.concurrency import LimitOptions, OrderOptions, SparkOptions
from penstock.app.options.consuming import TOPICS, DataOptions, SourceOptions
from penstock.app.options.delivery import DeliveryOptions, FailureOptions
from penstock.app.options.group_membership import ClientOptions, MembershipOptions
from penstock.app.options.routes import RouteOptions
from penstock.core.text.suggestions import suggestion
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.app.handler import Handler


class ConsumeOptions(
    SourceOptions,
    RouteOptions,
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
    "Routing": RouteOptions,
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
    found = {"topics": TOPICS}
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
    for route, option in product(handler.routes, HANDLER_OPTIONS.values()):
        value = getattr(route, option.name)
        refused = option.refusal(value, engine)
        if refused is not None:
            raise ConfigError(
                f"Handler {route.name} uses {option.written(value)}, which {ENGINE_NAMES[engine]} does not support: "
                f"{refused.reason}.",
                hint=refused.hint or ENGINE_HINTS[engine],
            )
