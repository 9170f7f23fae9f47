"""Conflicts between the handlers and pipelines of one app that use the same group."""

from penstock.app.handler import Handler
from penstock.app.pipelines import Pipeline
from penstock.app.routing.route_group import check_routes, shares_member
from penstock.errors import ConfigError

_ROUTING = (
    'Give each but the last a condition, such as when={"type": "created"}: the first whose condition holds gets the '
    "record."
)


def check_handlers(other: Handler, handler: Handler) -> None:
    """Refuse two handlers of one group that would share records, offsets or a static id."""
    if shares_member(other, handler):
        check_routes(other, handler)
        return
    hint = 'Give one of them its own group: @app.consume(..., group="...").'
    # Two patterns are compared when the app starts, by the topics that they match.
    shared = {topic for topic in handler.consumed_topics if other.consumes(topic)}
    shared |= {topic for topic in other.consumed_topics if handler.consumes(topic)}
    if shared:
        raise ConfigError(
            f"Handlers {other.name} and {handler.name} both consume {min(shared)!r} in group "
            f"{handler.group!r}, {_why_not(other, handler)}",
            hint=_ROUTING if handler.is_conditional else f"{_ROUTING} {hint}",
        )
    twice = set(handler.partitions) & set(other.partitions)
    if twice or bool(handler.partitions) != bool(other.partitions):
        what = f"{min(twice)} twice" if twice else "both named and assigned partitions"
        raise ConfigError(
            f"Handlers {other.name} and {handler.name} of group {handler.group!r} consume {what}, "
            "and would overwrite each other's offsets.",
            hint=hint,
        )
    if handler.static_id is not None and handler.static_id == other.static_id:
        raise ConfigError(
            f"Handlers {other.name} and {handler.name} of group {handler.group!r} both have the static_id "
            f"{handler.static_id!r}, so the broker would fence one of them.",
            hint="Give each its own static_id.",
        )


def _why_not(other: Handler, handler: Handler) -> str:
    if handler.is_conditional:
        return f"and {other.name} has no when=, so {handler.name} would never get a record."
    return "so each would get only a part of it."


def check_pipeline(pipeline: Pipeline, other: Handler | Pipeline) -> None:
    """Refuse a pipeline that would commit offsets of the same group and topic as another handler or pipeline."""
    theirs = other.consumes if isinstance(other, Handler) else other.topics.__contains__
    shared = [topic for topic in pipeline.topics if pipeline.group == other.group and theirs(topic)]
    if shared:
        raise ConfigError(
            f"{other.name} and pipeline {pipeline.name} both read {shared[0]!r} in group {pipeline.group!r}, "
            "and would overwrite each other's offsets.",
            hint='Give one of them its own group: @app.pipeline(..., group="...").',
        )
