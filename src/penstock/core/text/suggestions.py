"""Suggestions for an unknown name."""

from collections.abc import Collection, Mapping
from dataclasses import fields
from difflib import get_close_matches
from functools import wraps
from typing import Any, TypeVar

from penstock.errors import ConfigError

Kind = TypeVar("Kind", bound=type)


def suggestion(name: str, known: Collection[str], *, otherwise: str = "") -> str:
    """A hint with the most similar known name; if none is similar, ``otherwise``, or a list of all known names."""
    nearest = get_close_matches(name, known, n=1)
    return f"Did you mean {nearest[0]!r}?" if nearest else otherwise or f"There are: {', '.join(sorted(known))}."


def refuse_unknown(given: Mapping[str, Any], known: Collection[str], *, of: str) -> None:
    """Python's own TypeError would not suggest the name that was meant."""
    for name in given:
        if name not in known:
            raise ConfigError(f"{of} has no option {name!r}.", hint=suggestion(name, known))


def suggests_options(kind: Kind) -> Kind:
    """Decorate a dataclass that users call: a misspelt argument is an error that suggests the right name."""
    known = [each.name for each in fields(kind) if each.init]
    plain = kind.__init__  # type: ignore[misc]  # a subclass that is a dataclass has an __init__ of its own

    @wraps(plain)
    def init(self: object, *args: Any, **given: Any) -> None:
        refuse_unknown(given, known, of=kind.__name__)
        plain(self, *args, **given)

    kind.__init__ = init  # type: ignore[misc]
    return kind
