"""The pages that are tables: options, settings, events, metrics and headers."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from enum import StrEnum
from typing import Any

from docs_site.reference.docstrings import cell, markdown_of
from penstock.app.config.option_table import app_options
from penstock.app.options.option_reference import option_table, pipeline_table
from penstock.core.failures import dead_letter_headers
from penstock.core.records import origin, time_headers
from penstock.core.reports import event_json, events
from penstock.core.settings import names as setting_names
from penstock.core.settings.reserved import RESERVED
from penstock.ops.metrics.metric_list import METRICS

_LINK = re.compile(r"\]\((?!https?:)([^)]+)\)")


def options_page() -> str:
    lines = [
        "# Options",
        "",
        "Every option of `App(...)`, `@app.consume(...)` and `@app.pipeline(...)`. [Settings](../settings.md) says how",
        "to set them without a change of the code.",
        "",
        "## Options of an app",
        "",
        "`App(name, ...)` takes these; [the class](api.md#app) describes them.",
        "",
        "| option | default |",
        "|---|---|",
        *(f"| `{name}` | {_shown(each.default)} |" for name, each in app_options().items()),
        "| `settings` | none |",
        "",
        "## Options of a handler",
        "",
        "The last column names the engines on which an option has an effect.",
        "",
        _for_reference(option_table(), "running.md"),
        "",
        "## Options of a pipeline",
        "",
        "Pipelines run [only on Spark](../pipelines.md).",
        "",
        _for_reference(pipeline_table(), "pipelines.md"),
    ]
    return "\n".join(lines) + "\n"


def _shown(value: Any) -> str:
    return "none" if value is None else f"`{value!r}`"


def _for_reference(table: str, page: str) -> str:
    """The table with other links: it is made for this page in docs/."""

    def moved(match: "re.Match[str]") -> str:
        target = match[1]
        return f"](../{page}{target})" if target.startswith("#") else f"](../{target})"

    return _LINK.sub(moved, table)


def settings_page() -> str:
    sides = {"C": "consumers", "P": "producers", "*": "both"}
    rows = [
        f"| `{each.name}` | {sides[each.side]} | {_values(each.kind)} | {_instead(each.name)} |"
        for each in sorted(setting_names.SETTINGS.values(), key=lambda each: each.name)
    ]
    lines = [
        "# Kafka client settings",
        "",
        "Every setting that `settings=` accepts, with the values that Penstock checks. The page",
        "[Settings](../settings.md#client-settings) explains how to set them, and which names of the Java client work.",
        "",
        "| setting | for | values | note |",
        "|---|---|---|---|",
        *rows,
    ]
    return "\n".join(lines) + "\n"


def _values(kind: setting_names.Kind) -> str:
    match kind:
        case "flag":
            return "`true`, `false`"
        case setting_names.Numbers(low=low, high=high):
            return f"{low:,} to {high:,}"
        case frozenset():
            return ", ".join(f"`{each}`" for each in sorted(kind))
    return str(kind)


def _instead(name: str) -> str:
    if name in setting_names.ALIASES:
        return f"Another name of `{setting_names.ALIASES[name]}`."
    return f"Refused. {cell(RESERVED[name])}" if name in RESERVED else ""


def event_classes() -> list[type[events.Event]]:
    """The classes of events that engines emit; not their bases."""
    kinds = [each for each in vars(events).values() if isinstance(each, type) and issubclass(each, events.Event)]
    return [each for each in dict.fromkeys(kinds) if not each.__subclasses__()]


def events_page() -> str:
    lines = [
        "# Events",
        "",
        "Everything that Penstock reports, as a closed list: `--events FILE` writes these as JSON, and `@app.on_event`",
        "gets them as objects of `penstock.events`. [Running](../running.md#events) shows how to use them.",
        "",
    ]
    for each in event_classes():
        lines += [f"## {event_json.name_of(each)}", "", markdown_of(each), ""]
        if each.per_record:
            lines += ["One for each record; it is only made if somebody listens to it.", ""]
        lines += ["| field | type |", "|---|---|"]
        lines += [f"| `{field.name}` | `{_type(field.type)}` |" for field in fields(each)]
        lines += [""]
    return "\n".join(lines) + "\n"


def _type(hint: Any) -> str:
    text = hint if isinstance(hint, str) else inspect.formatannotation(hint)
    return re.sub(r"\bpenstock(?:\.\w+)*\.", "", text).replace("|", r"\|")


def metrics_page() -> str:
    lines = [
        "# Metrics",
        "",
        "Every metric of `--metrics`. [Metrics, alerts, traces and logs](../metrics.md) explains them.",
        "",
        "| name | kind | labels | meaning |",
        "|---|---|---|---|",
        *(
            f"| `{each.name}` | {each.kind} | {', '.join(f'`{label}`' for label in each.labels)} | {cell(each.help)} |"
            for each in METRICS.values()
        ),
    ]
    return "\n".join(lines) + "\n"


_HEADERS = {
    "Dead letters": dead_letter_headers.DeadLetterHeader,
    "Retry topics": origin.RetryHeader,
    "Replays of dead letters": dead_letter_headers.ReplayHeader,
    "Times that producers set": time_headers.TimeHeader,
}


def headers_page() -> str:
    lines = [
        "# Headers",
        "",
        "Every header that Penstock writes into records or reads from them. The [limits](../failures.md) of the texts",
        "keep a dead letter small enough for its topic.",
        "",
    ]
    for title, kind in _HEADERS.items():
        lines += [f"## {title}", "", markdown_of(kind), "", "| header | content |", "|---|---|"]
        lines += [f"| `{name}` | {cell(about)} |" for name, about in _described(kind)]
        lines += [""]
    return "\n".join(lines) + "\n"


def _described(kind: type[StrEnum]) -> Iterator[tuple[str, str]]:
    """Each header with the comment behind its declaration."""
    source = inspect.getsource(kind)
    comments = dict(re.findall(r"^    ([A-Z_]+) = .+?  # (.+)$", source, re.MULTILINE))
    for name, member in kind.__members__.items():
        yield member.value, comments.get(name, "")
