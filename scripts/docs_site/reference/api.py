"""The page about the public Python names."""

import dataclasses
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from docs_site.reference.docstrings import markdown_of, summary
from penstock.app.options import HANDLER_OPTIONS
from penstock.app.pipelines import PIPELINE_OPTIONS

# Each public module, and what a reader does with it.
MODULES = {
    "penstock": "What an app is made of.",
    "penstock.testing": "Tests of handlers and of assignors, without Kafka. See [Testing](../testing.md).",
    "penstock.assign": "Assignors, and the parts to write your own. See [Partition assignment](../assignment.md).",
    "penstock.stores": "Progress outside of Kafka. See [Guarantees](../guarantees.md#progress-in-your-database).",
    "penstock.events": "The classes of the [events](events.md), for `@app.on_event` and `on_event=`.",
}
# The attributes of App that only Penstock itself uses: engines, the command line, the testing kit.
INTERNAL = frozenset(
    {
        *("attach_control", "become", "controlled_by", "declarations", "declared", "declared_handlers"),
        *("detach_control", "hooks", "narrow", "packages", "pipeline_declarations", "refuse_pipelines"),
        *("take_hooks_of", "take_resources_of", "variant", "wired_handlers", "is_running", "backfill_guarantee"),
    }
)
_PREFIX = re.compile(r"\b(?:penstock|collections|typing|datetime|os|uuid)(?:\.\w+)*\.(?=\w)")
_LONG = 88


def api_page() -> str:
    lines = [
        "# Python API",
        "",
        "Every public name, with its arguments and what it does. A name that is not here may change at any time.",
        "Options of handlers and pipelines are [on a page of their own](options.md).",
        "",
    ]
    for name, about in MODULES.items():
        module = import_module(name)
        lines += [f"## `{name}`", "", about, ""]
        if name == "penstock.events":
            lines += [", ".join(f"`{each}`" for each in module.__all__), ""]
            continue
        for public in sorted(module.__all__, key=str.lower):
            lines += _entry(public, getattr(module, public))
    return "\n".join(lines) + "\n"


def _entry(name: str, item: Any) -> Iterator[str]:
    yield from (f"### `{name}`", "")
    if name == "__version__":
        yield from ("The version of Penstock, a text.", "")
        return
    if not inspect.isclass(item) and not inspect.isfunction(item):
        yield from (_value(name, item), "")
        return
    signature = signature_of(name, item)
    if signature:
        yield from ("```python", signature, "```", "")
    yield from (markdown_of(item), "")
    if inspect.isclass(item):
        yield from _members(item)


def _value(name: str, item: Any) -> str:
    if isinstance(item, dict):
        return f"The assignors by their names: {', '.join(f'`{each}`' for each in sorted(item))}."
    # A constant shares the docstring of its class.
    return summary(item) if name == "by" else f"`{item!r}`"


def _members(item: type) -> Iterator[str]:
    for name, member in sorted(inspect.getmembers(item), key=lambda each: each[0]):
        found = inspect.getattr_static(item, name)
        is_ours = getattr(found, "__module__", None) or getattr(getattr(found, "fget", None), "__module__", "")
        if name.startswith("_") or name in INTERNAL or not str(is_ours).startswith("penstock"):
            continue
        if isinstance(found, property):
            if inspect.getdoc(found):
                yield from (f"- **`{name}`** (property): {summary(found)}",)
        elif callable(member):
            yield from _method(name, member)
    yield ""


def _method(name: str, member: Any) -> Iterator[str]:
    if name in {"consume", "pipeline"}:
        yield from (f"- **`{name}(*topics, **options)`**: {summary(member)} See [the options](options.md).",)
    elif inspect.getdoc(member):
        yield from (f"- **`{one_line(signature_of(name, member))}`**: {summary(member)}",)


def one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace("(\n    ", "(").replace(",\n)", ")"))


def signature_of(name: str, item: Any) -> str:
    try:
        signature = inspect.signature(item)
    except (TypeError, ValueError):
        return ""
    parameters = [each for each in signature.parameters.values() if each.name != "self"]
    hides_rest = [each for each in parameters if not each.name.startswith("_")]
    text = str(signature.replace(parameters=hides_rest, return_annotation=inspect.Signature.empty))
    if dataclasses.is_dataclass(item):
        text = re.sub(r"<factory>", "...", text)
    text = _plain(text)
    if len(name) + len(text) <= _LONG:
        return f"{name}{text}"
    parts = [_plain(str(each)) for each in hides_rest]
    if any(each.kind is each.KEYWORD_ONLY for each in hides_rest):
        first = next(i for i, each in enumerate(hides_rest) if each.kind is each.KEYWORD_ONLY)
        parts.insert(first, "*")
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), ")"])


def _plain(text: str) -> str:
    text = re.sub(r"<class '([^']+)'>", r"\1", text)
    return _PREFIX.sub("", text).replace("'", '"').replace("NoneType", "None")


def documented_options() -> set[str]:
    """The options that the page about options has to have."""
    return {*HANDLER_OPTIONS, *PIPELINE_OPTIONS} - {"topics"}
