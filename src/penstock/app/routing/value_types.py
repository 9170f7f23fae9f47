"""Routes by the type of the decoded value: ``value=Created | Cancelled`` with a parameter of type ``Created``."""

from collections.abc import Callable
from typing import Any

from penstock.app.decoders import decoder
from penstock.serde import union_members

Decode = Callable[[bytes | None], Any]


def taken_types(value: Any, hint: Any) -> tuple[type, ...]:
    """The members of the union ``value`` that a handler with this type hint takes; empty if it takes all of them.

    The type of None is a member if the union has None.
    """
    members, taken = union_members(value), union_members(hint) or (hint,)
    is_narrower = bool(members) and set(taken) < set(members)
    return taken if is_narrower and all(isinstance(each, type) for each in taken) else ()


def decoder_of_union(value: Any) -> Decode:
    return decoder(value, None, "value")


def given(value: Any) -> Any:
    """The decoder of a route whose values are decoded already: the choice of the route needed their type."""
    return value
