"""Options from ``penstock.toml``."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.app.config.given_values import Given, read_given, require_handler
from penstock.app.config.option_table import app_options, handler_options
from penstock.app.options import SETTINGS
from penstock.core.text.suggestions import suggestion
from penstock.errors import ConfigError

DEFAULT_FILE = "penstock.toml"
_HANDLERS = "handlers"


def from_file(path: Path | None, handlers: Sequence[str] | None) -> list[Given]:
    """The values in the file; without a path, in ``penstock.toml`` of the current folder if it exists.

    ``handlers`` are the names of the app's handlers; None if there is no app, so that every name is accepted.
    """
    chosen = path or Path(DEFAULT_FILE)
    if path is None and not chosen.exists():
        return []
    text = _text(chosen)
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{chosen} is not TOML: {error}.", hint='Text goes in quotes: to = "shipments".') from error
    return list(_given(content, chosen, text, handlers))


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        reason = (error.strerror or "it cannot be opened").lower()
        raise ConfigError(f"{path} cannot be read: {reason}.", hint="Name another file with --config.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} cannot be read: it is not UTF-8.", hint="TOML files are UTF-8.") from error


def _given(content: Mapping[str, Any], path: Path, text: str, handlers: Sequence[str] | None) -> Iterator[Given]:
    for key, value in content.items():
        if key == _HANDLERS:
            continue
        origin = _origin(path, text, key)
        if key not in app_options() and key != SETTINGS:
            raise _unknown(key, origin)
        for name, inner in _entries(key, value, origin):
            yield from read_given(None, (key, *name), inner, _origin(path, text, key, *name))
    named = content.get(_HANDLERS, {})
    if not isinstance(named, Mapping):
        raise ConfigError(f"{_origin(path, text, _HANDLERS)}: handlers is not a table.", hint="Write [handlers.NAME].")
    for handler, options in named.items():
        origin = _origin(path, text, _HANDLERS, handler)
        require_handler(handler, named if handlers is None else handlers, origin)
        if not isinstance(options, Mapping):
            raise ConfigError(f"{origin}: handlers.{handler} is not a table.", hint=f"Write [handlers.{handler}].")
        for key, value in options.items():
            for name, inner in _entries(key, value, _origin(path, text, _HANDLERS, handler, key)):
                where = _origin(path, text, _HANDLERS, handler, key, *name)
                yield from read_given(handler, (key, *name), inner, where)


def _entries(key: str, value: Any, origin: str) -> list[tuple[tuple[str, ...], Any]]:
    """Each value in a table separately, so that an error names the line of the value."""
    if key == SETTINGS and not isinstance(value, Mapping):
        raise ConfigError(f"{origin}: settings is not a table.", hint="Write [settings], and a line for each below it.")
    return _leaves(value)


def _leaves(value: Any) -> list[tuple[tuple[str, ...], Any]]:
    """The values with their paths. TOML reads ``session.timeout.ms = 1`` without quotes as three nested tables."""
    if not isinstance(value, Mapping):
        return [((), value)]
    return [((key, *path), leaf) for key, inner in value.items() for path, leaf in _leaves(inner)]


def _unknown(key: str, origin: str) -> ConfigError:
    if key in handler_options():
        return ConfigError(
            f"{origin}: {key!r} is an option of handlers.",
            hint='Put it under [handlers.NAME], or [handlers."*"] for all.',
        )
    known = [*app_options(), SETTINGS, _HANDLERS]
    return ConfigError(f"{origin}: the app has no option {key!r}.", hint=suggestion(key, known))


def _origin(path: Path, text: str, *keys: str) -> str:
    line = line_of(text, keys)
    return f"{path} line {line}" if line else str(path)


def line_of(text: str, keys: Sequence[str]) -> int | None:
    """The line that has the longest part of this path. tomllib reports no lines, so each line is parsed alone."""
    table: tuple[str, ...] = ()
    best, found = 0, None
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if stripped.startswith("["):
            table = _path(stripped)
            here = table
        elif "=" in stripped:
            here = (*table, *_path(stripped.partition("=")[0] + "= 0"))
        else:
            continue
        if here and len(here) > best and tuple(keys[: len(here)]) == here:
            best, found = len(here), number
    return found


def _path(line: str) -> tuple[str, ...]:
    try:
        content = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ()
    path: list[str] = []
    while isinstance(content, dict) and content:
        key = next(iter(content))
        path.append(key)
        content = content[key]
    return tuple(path)
