"""Applies file, environment and flags to the app, and prints the effective configuration."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from penstock.app import App
from penstock.app.config import (
    Configured,
    Effective,
    Given,
    Part,
    configured,
    from_environment,
    from_file,
    from_flags,
)
from penstock.cli.console.screen import Screen
from penstock.core.settings import shown_setting
from penstock.devkit import embedded_brokers
from penstock.kafka import CONSUMER_DEFAULTS, PRODUCER_DEFAULTS

_Rows = dict[str, tuple[Any, str]]


def configure(app: App, *, file: Path | None, brokers: str | None, flags: Sequence[str]) -> Configured:
    """Apply file, environment and flags to the app; later ones override earlier ones. ``brokers`` is the flag."""
    handlers = [handler.name for handler in app.declared_handlers]
    chosen = [Given(None, ("brokers",), brokers, "--brokers")] if brokers else []
    return configured(
        app,
        [
            from_file(file, handlers),
            from_environment(os.environ, handlers),
            [*from_flags(flags, handlers), *chosen],
        ],
    )


def print_config(config: Configured, screen: Screen, *, as_json: bool) -> None:
    """Print every option and setting with its value, secrets as ``***``, and where it was set."""
    shown = _shown(config)
    if as_json:
        screen.out(json.dumps(shown))
        return
    parts = [("app", shown["app"]), *(("handler", each) for each in shown["handlers"])]
    for number, (kind, part) in enumerate(parts):
        if number:
            screen.out("")
        screen.out(f"{kind} {part['name']}", style="bold")
        _print_rows(part["options"], screen)
        if part["settings"]:
            screen.out("  settings", style="bold")
            _print_rows(part["settings"], screen, indent=4)


def _print_rows(rows: Mapping[str, Mapping[str, Any]], screen: Screen, *, indent: int = 2) -> None:
    texts = [(name, _text(each["value"]), each["from"]) for name, each in rows.items()]
    names, values = (max(len(row[column]) for row in texts) for column in (0, 1))
    for name, value, origin in texts:
        screen.out(f"{' ' * indent}{name.ljust(names)}  {value.ljust(values)}  {origin}")


def _shown(config: Configured) -> dict[str, Any]:
    app = _part(config.of_app, {})
    if config.app.brokers is None and (embedded := embedded_brokers()):
        app["options"]["brokers"] = {"value": embedded, "from": "penstock up"}
    return {
        "app": app,
        "handlers": [_part(each, {**CONSUMER_DEFAULTS, **PRODUCER_DEFAULTS}) for each in config.of_handlers],
    }


def _part(part: Part, defaults: Mapping[str, Any]) -> dict[str, Any]:
    settings = {name: Effective(value, "default") for name, value in defaults.items()} | part.settings
    return {
        "name": part.name,
        "options": _as_values({row: each for name, value in part.options.items() for row, each in _rows(name, value)}),
        "settings": _as_values({name: (each.value, each.origin) for name, each in sorted(settings.items())}),
    }


def _rows(name: str, each: Effective) -> list[tuple[str, tuple[Any, str]]]:
    """Return one row, or one row per field for a dataclass such as ``retry``."""
    if not is_dataclass(each.value) or isinstance(each.value, type):
        return [(name, (each.value, each.origin))]
    return [
        (f"{name}.{part.name}", (getattr(each.value, part.name), each.parts.get(part.name, each.origin)))
        for part in fields(each.value)
    ]


def _as_values(rows: _Rows) -> dict[str, dict[str, Any]]:
    return {name: {"value": _plain(name, value), "from": origin} for name, (value, origin) in rows.items()}


def _plain(name: str, value: Any) -> Any:
    """Return the value without secrets, in a form that JSON supports."""
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(name, each) for each in value]
    if value is None or isinstance(value, bool | int | float):
        return shown_setting(name, value)
    return shown_setting(name, value if isinstance(value, str) or callable(value) else repr(value))


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        return ", ".join(_text(each) for each in value)
    return str(value).lower() if isinstance(value, bool) else str(value)
