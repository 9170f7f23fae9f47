"""``Given``: one value for one option from outside of code, with its origin."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from penstock.app.application import App
from penstock.app.config.option_table import Kind, Option, find_option, options_of
from penstock.app.options import SETTINGS
from penstock.core.settings import hide_passwords, require_known
from penstock.core.text.suggestions import suggestion
from penstock.errors import ConfigError

ALL = "*"

KINDS: Mapping[str, Kind] = {"handlers": "handler", "pipelines": "pipeline"}
"""The tables of a file, and the first words of long names in flags."""


@dataclass(frozen=True)
class Given:
    """``path`` is the option, and perhaps a part of it."""

    owner: "Owner"
    path: tuple[str, ...]
    value: Any
    origin: str


@dataclass(frozen=True)
class Owner:
    """What the value is for: a handler or pipeline by its name, ``*`` for every one; without a kind, the app."""

    kind: Kind | None = None
    name: str = ""

    def is_for(self, kind: Kind, name: str) -> bool:
        return self.kind == kind and self.name == name


APP = Owner()


@dataclass(frozen=True)
class Names:
    """The names of an app's handlers and pipelines."""

    handlers: Sequence[str] = ()
    pipelines: Sequence[str] = ()

    @classmethod
    def of(cls, app: App) -> Self:
        return cls([each.name for each in app.declared_handlers], [each.name for each in app.pipelines])

    def __getitem__(self, kind: Kind) -> Sequence[str]:
        return self.handlers if kind == "handler" else self.pipelines

    def kinds_of(self, name: str) -> list[Kind]:
        """Whether there is a handler, a pipeline or both with this name."""
        return [kind for kind in KINDS.values() if name in self[kind]]


def read_given(owner: Owner, path: Sequence[str], value: Any, origin: str) -> list[Given]:
    """Parse a value. An unknown option, part or setting, or a value of the wrong type, is an error."""
    name, *rest = path
    if name == SETTINGS:
        return [_setting(owner, ".".join(rest), value, origin)]
    of = "the app" if owner.kind is None else f"a {owner.kind}"
    option = find_option(options_of(owner.kind), name, of=of, origin=origin)
    return [Given(owner, (name, *inner), leaf, origin) for inner, leaf in _read(option, name, rest, value, origin)]


def require_name(kind: Kind, name: str, names: Collection[str], origin: str) -> None:
    if name in names or name == ALL:
        return
    has = f"The app has: {', '.join(names)}." if names else f"The app has no {kind}s."
    raise ConfigError(f"{origin}: there is no {kind} {name!r}.", hint=suggestion(name, names, otherwise=has))


_Leaves = list[tuple[tuple[str, ...], Any]]


def _read(option: Option, dotted: str, rest: Sequence[str], value: Any, origin: str) -> _Leaves:
    """The parsed value; of an option with parts, the parsed value of each given part."""
    parts = option.parts
    if rest or (parts and isinstance(value, Mapping)):
        inner = {rest[0]: value} if rest else value
        found: _Leaves = []
        for key, each in inner.items():
            part = find_option(parts, key, of=dotted, origin=origin)
            found += [((key, *path), leaf) for path, leaf in _read(part, f"{dotted}.{key}", rest[1:], each, origin)]
        return found
    if option.read is None:
        raise ConfigError(
            f"{origin}: {dotted} has parts and no value of its own."
            if parts
            else f"{origin}: {dotted} cannot be set here, because it takes a Python object.",
            hint=f"Set its parts: {', '.join(sorted(parts))}." if parts else "Set it in code.",
        )
    try:
        return [((), option.read(value))]
    except ValueError as error:
        shown = hide_passwords(repr(value))
        raise ConfigError(f"{origin}: {dotted}={shown} is not valid.", hint=f"It takes {error}.") from None


def _setting(owner: Owner, name: str, value: Any, origin: str) -> Given:
    try:
        require_known(name)
    except ConfigError as error:
        raise ConfigError(f"{origin}: {error.problem}", hint=error.hint) from error
    return Given(owner, (SETTINGS, name), value, origin)
