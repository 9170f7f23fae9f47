"""``Given``: one value for one option from outside of code, with its origin."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.app.config.option_table import Option, app_options, find_option, handler_options
from penstock.app.options import SETTINGS
from penstock.core.settings import hide_passwords, require_known
from penstock.core.text.suggestions import suggestion
from penstock.errors import ConfigError

ALL = "*"


@dataclass(frozen=True)
class Given:
    """``handler`` is None for the app and ``*`` for every handler. ``path`` is the option, and perhaps a part of it."""

    handler: str | None
    path: tuple[str, ...]
    value: Any
    origin: str


def read_given(handler: str | None, path: Sequence[str], value: Any, origin: str) -> list[Given]:
    """Parse a value. An unknown option, part or setting, or a value of the wrong type, is an error."""
    name, *rest = path
    if name == SETTINGS:
        return [_setting(handler, ".".join(rest), value, origin)]
    of = "the app" if handler is None else "a handler"
    option = find_option(app_options() if handler is None else handler_options(), name, of=of, origin=origin)
    return [Given(handler, (name, *inner), leaf, origin) for inner, leaf in _read(option, name, rest, value, origin)]


def require_handler(name: str, handlers: Collection[str], origin: str) -> None:
    if name in handlers or name == ALL:
        return
    hint = suggestion(name, handlers, otherwise=f"The app has: {', '.join(handlers)}.")
    raise ConfigError(f"{origin}: there is no handler {name!r}.", hint=hint)


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


def _setting(handler: str | None, name: str, value: Any, origin: str) -> Given:
    try:
        require_known(name)
    except ConfigError as error:
        raise ConfigError(f"{origin}: {error.problem}", hint=error.hint) from error
    return Given(handler, (SETTINGS, name), value, origin)
