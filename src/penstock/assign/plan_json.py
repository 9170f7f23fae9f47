"""Groups and plans as JSON data, for files and for ``--json``."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from penstock.assign.model import Group, Member, Topic
from penstock.assign.plan import Move, Plan, Side
from penstock.errors import ConfigError

_SHAPE = '{"topics": {"orders": 12}, "members": [{"id": "a", "topics": ["orders"], "owned": {"orders": [0, 1]}}]}'
_HINT = f"A group looks like this: {_SHAPE}."
_MEMBER = {"id", "topics", "static_id", "rack", "owned", "generation", "weight", "client"}
_TOPIC = {"partitions", "racks", "lag", "cost", "rate"}


def read_group(data: object) -> Group:
    """The group that the data describe; errors name the wrong part."""
    whole = _table(data, "The group", {"topics", "members"})
    topics = _table(whole.get("topics", {}), "topics", None)
    members = whole.get("members", [])
    if not isinstance(members, list):
        raise ConfigError("members is not a list.", hint=_HINT)
    return Group(
        tuple(_member(each) for each in members), {str(name): _topic(str(name), each) for name, each in topics.items()}
    )


def write_group(group: Group) -> dict[str, Any]:
    """The format that ``read_group`` reads; without user data."""
    return {
        "topics": {name: _known(asdict(topic)) for name, topic in group.topics.items()},
        "members": [
            _known({**asdict(member), "user_data": None, "owned": _by_topic(member.owned)}) for member in group.members
        ],
    }


def write_plan(made: Plan) -> dict[str, Any]:
    return {
        "assignor": made.assignor,
        "estimate": made.estimate,
        "before": _side(made.before),
        "after": _side(made.after),
        "moves": [_move(move) for move in made.moves],
        "moves_beyond_need": made.beyond_need,
        "eager": asdict(made.eager),
        "cooperative": asdict(made.cooperative),
    }


def _move(move: Move) -> dict[str, Any]:
    topic, number = move.tp
    return {"topic": topic, "partition": number, "from": move.source, "to": move.target, "why": move.reason}


def _side(side: Side) -> dict[str, Any]:
    return {
        "partitions": {member: _by_topic(tps) for member, tps in side.partitions.items()},
        "lags": dict(side.lags),
        "rates": dict(side.rates),
        "spread": asdict(side.spread),
        "lag": asdict(side.lag),
        "rate": asdict(side.rate),
        "far": side.far,
    }


def _by_topic(tps: tuple[tuple[str, int], ...]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, number in sorted(tps):
        found.setdefault(topic, []).append(number)
    return found


def _known(fields: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: value for name, value in fields.items() if value not in (None, (), {})}
    return {name: [sorted(racks) for racks in value] if name == "racks" else value for name, value in shown.items()}


def _member(data: object) -> Member:
    fields = _table(data, "A member", _MEMBER)
    if "id" not in fields:
        raise ConfigError("A member has no id.", hint=_HINT)
    owned = _table(fields.get("owned", {}), f"owned of member {fields['id']!r}", None)
    try:
        tps = tuple((str(topic), int(number)) for topic, numbers in owned.items() for number in numbers)
        return Member(**{**fields, "topics": _list(fields.get("topics", [])), "owned": tps})
    except (TypeError, ValueError) as error:
        raise ConfigError(f"Member {fields['id']!r} cannot be read: {error}.", hint=_HINT) from error


def _topic(name: str, data: object) -> Topic:
    if isinstance(data, int):
        return Topic(data)
    fields = _table(data, f"Topic {name!r}", _TOPIC)
    if "partitions" not in fields:
        raise ConfigError(f"Topic {name!r} has no number of partitions.", hint=_HINT)
    try:
        known = {field: _list(value) for field, value in fields.items() if field != "partitions"}
        return Topic(fields["partitions"], **known)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"Topic {name!r} cannot be read: {error}.", hint=_HINT) from error


def _list(value: object) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list")
    return tuple(value)


def _table(data: object, what: str, allowed: set[str] | None) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise ConfigError(f"{what} is {data!r}, which is not a table.", hint=_HINT)
    unknown = set(data) - allowed if allowed is not None else set()
    if unknown:
        raise ConfigError(f"{what} has the unknown field {min(unknown)!r}.", hint=_HINT)
    return data
