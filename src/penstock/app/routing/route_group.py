"""``RouteGroup``: the handlers that share one member, which the engines see as one handler.

The group has the options of the member, which are equal for all of its routes: topics, group, order, concurrency, dead
letters and so on. Each route has its own function, parameters, resources, decoders, outputs and retries.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from penstock.app.handler import Handler
from penstock.app.options import HANDLER_OPTIONS
from penstock.app.resources.wiring import Wiring, union
from penstock.app.routing.when import Otherwise
from penstock.app.signature import Signature
from penstock.errors import ConfigError

_NAMED_ROUTES = 3
# Compared first, because the defaults of others follow from them: an error should name what was written.
_DECIDE_DEFAULTS = ("delivery", "workers", "scale", "concurrency")


@dataclass(frozen=True, kw_only=True)
class RouteGroup(Handler):
    """``declared`` are the routes, in the order in which they are tried. The fields are those of the first route.

    ``name`` joins the names of the routes: ``create+cancel``. The member is called after it.
    """

    declared: tuple[Handler, ...]

    def __post_init__(self) -> None:
        """Check nothing: each route was checked when it was declared, and check_routes compared them."""

    @property
    def routes(self) -> tuple[Handler, ...]:
        return self.declared

    @cached_property
    def signature(self) -> Signature:
        """How engines call it: each route has a signature of its own."""
        own = [route.signature for route in self.routes]
        kinds: list[Any] = []  # not all type hints can be hashed
        kinds += (kind for each in own for kind in each.output_types if kind not in kinds)
        return Signature(
            is_async=own[0].is_async,
            parts=tuple(dict.fromkeys(part for each in own for part in each.parts)),
            output_types=tuple(kinds),
            has_several_outputs=any(each.has_several_outputs for each in own),
        )

    @property
    def takes_the_rest(self) -> bool:
        """Whether the last route takes every record that the others do not take."""
        return not self.routes[-1].is_conditional

    @property
    def chosen_otherwise(self) -> Otherwise | None:
        """What happens to a record that no route takes; None if there can be none."""
        if self.takes_the_rest:
            return None
        return self.otherwise or ("stop" if self.dead_letter is None else "dead_letter")

    def wired(self, wiring: Wiring) -> "RouteGroup":
        """A copy whose routes get what is made; each keeps its own resources and middleware."""
        routes = tuple(route.wired(route.wiring.with_values_of(wiring)) for route in self.routes)
        made = copy(self)
        made.__dict__.update(declared=routes, wiring=wiring)
        return made

    def without_settings(self) -> "RouteGroup":
        return replace(self, settings={}, declared=tuple(route.without_settings() for route in self.declared))


def with_route_groups(declared: Iterable[Handler]) -> tuple[Handler, ...]:
    """The handlers that the engines run: routes of the same source and group become one RouteGroup."""
    found: list[list[Handler]] = []
    for handler in declared:
        partners = next((each for each in found if shares_member(each[0], handler)), None)
        if partners is None:
            found.append([handler])
        else:
            partners.append(handler)
    return tuple(each[0] if _is_plain(each) else _group(each) for each in found)


def _is_plain(handlers: Sequence[Handler]) -> bool:
    return len(handlers) == 1 and (isinstance(handlers[0], RouteGroup) or not handlers[0].is_conditional)


def shares_member(first: Handler, handler: Handler) -> bool:
    """Whether both are routes of one group: the first has a condition, and both consume the same in one group."""
    return first.is_conditional and first.group == handler.group and bool(_shared_source(first, handler))


def _shared_source(one: Handler, other: Handler) -> set[Any]:
    shared: set[Any] = {topic for topic in (*one.consumed_topics, *_named(one)) if other.consumes(topic)}
    shared |= {topic for topic in (*other.consumed_topics, *_named(other)) if one.consumes(topic)}
    return shared | ({one.pattern} & {other.pattern} - {None})


def _named(handler: Handler) -> set[str]:
    return {topic for topic, _ in handler.partitions}


def check_routes(first: Handler, handler: Handler) -> None:
    """Refuse a handler that cannot be a route of the same member as an earlier one."""
    if first.name == handler.name:
        raise ConfigError(
            f"Two handlers of {first.source} in group {first.group!r} are called {first.name}, and events, metrics and "
            "errors name them.",
            hint='Rename one; or give one handler several values: when={"type": ["created", "updated"]}.',
        )
    both = f"Handlers {first.name} and {handler.name}"
    for name in dict.fromkeys((*_DECIDE_DEFAULTS, *HANDLER_OPTIONS)):
        option = HANDLER_OPTIONS[name]
        if not option.of_route and getattr(first, option.name) != getattr(handler, option.name):
            what = "topics" if option.name == "topics" else f"{option.name}="
            raise ConfigError(
                f"{both} share the records of {first.source} in group {first.group!r}, and they differ in "
                f"{what}, which belongs to the member that consumes for both.",
                hint=f'Give both the same {what}; or give one of them its own group: group="...".',
            )
    if first.signature.is_async != handler.signature.is_async:
        names = (first.name, handler.name) if first.signature.is_async else (handler.name, first.name)
        raise ConfigError(
            f"{both} share the records of {first.source}, but {names[0]} is async def and {names[1]} is def: they run "
            "on the same workers.",
            hint="Write both with def, or both with async def.",
        )
    _check_rest(first, handler)
    if first.value_types and handler.value_types and first.value != handler.value:
        raise ConfigError(
            f"{both} choose records by the type of the value, but their value= are different unions.",
            hint="Give both the same union, such as value=Created | Cancelled: each record is decoded once.",
        )


def _check_rest(first: Handler, handler: Handler) -> None:
    """Check what happens to the records that no condition takes: only one of the declarations can say it."""
    chosen = [each for each in (first, handler) if each.otherwise is not None]
    if chosen and not handler.is_conditional:
        raise ConfigError(
            f"otherwise= of handler {chosen[0].name} has no effect: handler {handler.name} has no when=, so it takes "
            "every record that is left.",
            hint=f"Leave otherwise= out, or give {handler.name} a when=.",
        )
    if len({each.otherwise for each in chosen}) > 1:
        raise ConfigError(
            f"Handlers {first.name} and {handler.name} share the records of {first.source}, but one has "
            f'otherwise="{first.otherwise}" and the other otherwise="{handler.otherwise}".',
            hint="Write it at one of them.",
        )


def _group(routes: Sequence[Handler]) -> RouteGroup:
    first = routes[0]
    values: Mapping[str, Any] = {each.name: getattr(first, each.name) for each in fields(Handler)}
    own = {
        "name": _joined([route.name for route in routes]),
        # Engines ask whether there are outputs at all, and create the topics of all routes.
        "to": tuple(dict.fromkeys(topic for route in routes for topic in route.output_topics)) or None,
        "wiring": union([route.wiring for route in routes]),
        "otherwise": next((route.otherwise for route in routes if route.otherwise is not None), None),
    }
    return RouteGroup(**{**values, **own}, declared=tuple(routes))


def _joined(names: Sequence[str]) -> str:
    more = len(names) - _NAMED_ROUTES
    return "+".join(names) if more <= 0 else f"{'+'.join(names[:_NAMED_ROUTES])}+{more}more"
