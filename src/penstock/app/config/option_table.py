"""Which options an app and its handlers have, and how each is read from a file, a variable or a flag.

All of it comes from the signatures of ``App`` and ``App.consume``: an option added there works here by itself.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any, get_type_hints

from penstock.app.application import App
from penstock.app.config.value_readers import Reader, list_reader, reader_for
from penstock.core.text.suggestions import suggestion
from penstock.errors import ConfigError

SETTINGS = "settings"


@dataclass(frozen=True)
class Option:
    """One option; ``parts`` are the options inside of it, as ``attempts`` is inside of ``retry``."""

    name: str
    default: Any
    read: Reader | None
    record: type | None = None

    @property
    def parts(self) -> dict[str, "Option"]:
        return {} if self.record is None else _of_record(self.record)


@cache
def app_options() -> dict[str, Option]:
    return dict(_of_function(App.__init__))


@cache
def handler_options() -> dict[str, Option]:
    return dict(_of_function(App.consume))


def find_option(options: Mapping[str, Option], name: str, *, of: str, origin: str) -> Option:
    """The option of this name; an unknown one is an error that names the nearest."""
    if name in options:
        return options[name]
    no_parts = "" if options else "It takes one value, without parts."
    raise ConfigError(f"{origin}: {of} has no option {name!r}.", hint=suggestion(name, options, otherwise=no_parts))


def _of_function(function: Callable[..., Any]) -> Iterator[tuple[str, Option]]:
    hints = get_type_hints(function)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name != SETTINGS:
            yield parameter.name, _option(parameter.name, hints[parameter.name], parameter.default)
        elif parameter.kind is parameter.VAR_POSITIONAL:
            yield parameter.name, Option(parameter.name, (), list_reader([hints[parameter.name]]))


def _of_record(record: type) -> dict[str, Option]:
    hints = get_type_hints(record)
    return {each.name: _option(each.name, hints[each.name], each.default) for each in fields(record)}


def _option(name: str, hint: Any, default: Any) -> Option:
    records = [each for each in _members(hint) if isinstance(each, type) and is_dataclass(each)]
    return Option(name, default, reader_for(hint), records[0] if records else None)


def _members(hint: Any) -> tuple[Any, ...]:
    return getattr(hint, "__args__", (hint,))
