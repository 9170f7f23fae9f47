"""Which options an app, its handlers and its pipelines have, and how each is read from a file, a variable or a flag.

The options of the app come from the signature of ``App``, those of a handler from ``penstock.app.options``, those of a
pipeline from ``penstock.app.pipelines``.
"""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any, Literal, get_type_hints

from penstock.app.application import App
from penstock.app.config.value_readers import Reader, list_reader, reader_for
from penstock.app.options import HANDLER_OPTIONS, SETTINGS
from penstock.app.options.option_support import DeclaredOption
from penstock.app.pipelines import PIPELINE_OPTIONS
from penstock.core.text.suggestions import suggestion
from penstock.errors import ConfigError

Kind = Literal["handler", "pipeline"]
"""The two kinds of functions that an app has."""


@dataclass(frozen=True)
class Option:
    """One option. ``parts`` are the fields of its dataclass, such as ``attempts`` of ``retry``."""

    name: str
    default: Any
    read: Reader | None
    record: type | None = None

    @property
    def parts(self) -> dict[str, "Option"]:
        return {} if self.record is None else _of_record(self.record)


@cache
def app_options() -> dict[str, Option]:
    hints, parameters = get_type_hints(App.__init__), inspect.signature(App.__init__).parameters.values()
    keywords = [each for each in parameters if each.kind is each.KEYWORD_ONLY and each.name != SETTINGS]
    return {each.name: _option(each.name, hints[each.name], each.default) for each in keywords}


@cache
def handler_options() -> dict[str, Option]:
    return _from_table(HANDLER_OPTIONS)


@cache
def pipeline_options() -> dict[str, Option]:
    return _from_table(PIPELINE_OPTIONS)


def options_of(kind: Kind | None) -> dict[str, Option]:
    """The options of a handler, of a pipeline, or of the app."""
    match kind:
        case "handler":
            return handler_options()
        case "pipeline":
            return pipeline_options()
        case None:
            return app_options()


def _from_table(table: Mapping[str, DeclaredOption]) -> dict[str, Option]:
    found = {name: _option(name, each.read_as or each.hint, each.default) for name, each in table.items()}
    del found[SETTINGS]
    return {**found, "topics": Option("topics", (), list_reader([table["topics"].hint]))}


def find_option(options: Mapping[str, Option], name: str, *, of: str, origin: str) -> Option:
    """The option with this name. An unknown name is an error that suggests the nearest."""
    if name in options:
        return options[name]
    no_parts = "" if options else "It takes one value, without parts."
    raise ConfigError(f"{origin}: {of} has no option {name!r}.", hint=suggestion(name, options, otherwise=no_parts))


def _of_record(record: type) -> dict[str, Option]:
    hints = get_type_hints(record)
    return {each.name: _option(each.name, hints[each.name], each.default) for each in fields(record)}


def _option(name: str, hint: Any, default: Any) -> Option:
    records = [each for each in _members(hint) if isinstance(each, type) and is_dataclass(each)]
    return Option(name, default, reader_for(hint), records[0] if records else None)


def _members(hint: Any) -> tuple[Any, ...]:
    return getattr(hint, "__args__", (hint,))
