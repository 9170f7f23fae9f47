"""Options from ``penstock.toml``."""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from penstock.app.config.given_values import APP, KINDS, Given, Names, Owner, read_given, require_name
from penstock.app.config.option_table import Kind, app_options, handler_options, pipeline_options
from penstock.app.options import SETTINGS
from penstock.core.text.suggestions import suggestion
from penstock.errors import ConfigError

DEFAULT_FILE = "penstock.toml"


def from_file(path: Path | None, names: Names | None) -> list[Given]:
    """The values in the file; without a path, in ``penstock.toml`` of the current folder if it exists.

    ``names`` are those of the app's handlers and pipelines; None if there is no app, so that every name is accepted.
    """
    chosen = path or Path(DEFAULT_FILE)
    if path is None and not chosen.exists():
        return []
    text = _text(chosen)
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{chosen} is not TOML: {error}.", hint='Text goes in quotes: to = "shipments".') from error
    return list(_given(content, chosen, text, names))


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        reason = (error.strerror or "it cannot be opened").lower()
        raise ConfigError(f"{path} cannot be read: {reason}.", hint="Name another file with --config.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} cannot be read: it is not UTF-8.", hint="TOML files are UTF-8.") from error


def _given(content: Mapping[str, Any], path: Path, text: str, names: Names | None) -> Iterator[Given]:
    at = partial(_origin, path, text)
    for key, value in content.items():
        if key in KINDS:
            continue
        if key not in app_options() and key != SETTINGS:
            raise _unknown(key, at(key))
        for name, inner in _entries(key, value, at(key)):
            yield from read_given(APP, (key, *name), inner, at(key, *name))
    for table, kind in KINDS.items():
        yield from _of_kind(table, kind, content.get(table, {}), at, None if names is None else names[kind])


def _of_kind(
    table: str, kind: Kind, content: Any, at: Callable[..., str], names: Sequence[str] | None
) -> Iterator[Given]:
    """The values of the table ``handlers`` or ``pipelines``; ``at`` returns the origin of a path."""
    if not isinstance(content, Mapping):
        raise ConfigError(f"{at(table)}: {table} is not a table.", hint=f"Write [{table}.NAME].")
    for owner, options in content.items():
        require_name(kind, owner, content if names is None else names, at(table, owner))
        if not isinstance(options, Mapping):
            raise ConfigError(f"{at(table, owner)}: {table}.{owner} is not a table.", hint=f"Write [{table}.{owner}].")
        for key, value in options.items():
            for name, inner in _entries(key, value, at(table, owner, key)):
                yield from read_given(Owner(kind, owner), (key, *name), inner, at(table, owner, key, *name))


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
    if key in pipeline_options():
        return ConfigError(
            f"{origin}: {key!r} is an option of pipelines.",
            hint='Put it under [pipelines.NAME], or [pipelines."*"] for all.',
        )
    known = [*app_options(), SETTINGS, *KINDS]
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
