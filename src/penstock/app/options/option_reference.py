"""The option tables for people: signatures and help of ``App.consume`` and ``App.pipeline``, and tables in the docs."""

import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import Any, Literal, TypeVar, get_origin

from penstock.app.options import HANDLER_OPTIONS
from penstock.app.options.option_support import DeclaredOption, Engine, HandlerOption, Ignored, Refused
from penstock.app.pipelines import PIPELINE_OPTIONS

F = TypeVar("F", bound=Callable[..., Any])
Declared = TypeVar("Declared", bound=DeclaredOption)

_HELP_WIDTH = 100
_SHORT_NAMES: Mapping[Engine, str] = {
    "local": "the local engine",
    "spark": "Spark",
    "testing": "Bench",
    "share": "share groups",
}
_BEGIN = "<!-- options: {name} (`make option-tables` writes this table from src/penstock/app/{source}) -->"
_END = "<!-- end of options -->"


def documented(options: Mapping[str, DeclaredOption]) -> Callable[[F], F]:
    """Give the function a signature and a docstring with every option, for ``help``, notebooks and ``inspect``.

    Type checkers and editors read ``Unpack[...]`` instead.
    """

    def document(function: F) -> F:
        own = inspect.signature(function)
        keywords = [
            inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.hint)
            for each in options.values()
            if each.name != "topics"
        ]
        before = [each for each in own.parameters.values() if each.kind is not each.VAR_KEYWORD]
        vars(function)["__signature__"] = own.replace(parameters=[*before, *keywords])
        function.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\n{_help(options)}"
        return function

    return document


def _help(every: Mapping[str, DeclaredOption]) -> str:
    lines: list[str] = []
    for group, options in _by_group(every):
        lines += [f"{group}:"] if group else []
        for option in options:
            text = f"{option.name}: {option.text}{_help_default(option)}{_help_refusals(option)}"
            lines += textwrap.wrap(text, _HELP_WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 8)
        lines += [""]
    return "\n".join(lines)


def _by_group(options: Mapping[str, Declared]) -> Iterator[tuple[str, Iterator[Declared]]]:
    return groupby(options.values(), key=lambda option: option.group)


def _help_default(option: DeclaredOption) -> str:
    return f" Default: {option.shown_default.replace('`', '``')}." if option.shown_default else ""


def _help_refusals(option: DeclaredOption) -> str:
    if not isinstance(option, HandlerOption):
        return ""
    refusing = [
        f"{_SHORT_NAMES[engine]}{_refused_values(option, engine)}"
        for engine in _SHORT_NAMES
        if isinstance(option.on(engine), Refused)
    ]
    return f" Refused by: {', '.join(refusing)}." if refusing else ""


def _refused_values(option: HandlerOption, engine: Engine) -> str:
    """In brackets, for an option of which the engine supports further values besides the default."""
    support = option.on(engine)
    if not isinstance(support, Refused) or not support.allowed:
        return ""
    refused = option.refused_words(engine)
    return f" ({', '.join(refused)})" if refused else f" (except {option.default} and {', '.join(support.allowed)})"


def option_table() -> str:
    """Every keyword option in a table, group by group."""
    lines = ["| option | default | meaning | engines |", "|---|---|---|---|"]
    for group, options in _by_group(HANDLER_OPTIONS):
        lines.append(f"| **{group}** | | | |")
        lines += [
            f"| `{each.name}` | {_default(each)} | {_meaning(each)} | {_engines(each)} |"
            for each in options
            if each.name != "topics"
        ]
    return "\n".join(lines)


def pipeline_table() -> str:
    """Every keyword option of pipelines."""
    lines = ["| option | default | meaning |", "|---|---|---|"]
    for group, options in _by_group({name: each for name, each in PIPELINE_OPTIONS.items() if name != "topics"}):
        lines.append(f"| **{group}** | | |")
        lines += [f"| `{each.name}` | {_default(each)} | {_meaning(each)} |" for each in options]
    return "\n".join(lines)


def support_table(engine: Engine) -> str:
    """The options that this engine refuses or ignores, with the reasons."""
    rows: dict[Refused | Ignored, list[str]] = {}
    for option in HANDLER_OPTIONS.values():
        support = option.on(engine)
        if support is not None:
            rows.setdefault(support, []).append(_written(option, engine))
    lines = ["| option | | why |", "|---|---|---|"]
    for support, options in rows.items():
        effect = "refused" if isinstance(support, Refused) else "no effect"
        lines.append(f"| {', '.join(options)} | {effect} | {_markdown(_sentence(support.reason))} |")
    return "\n".join(lines)


def _written(option: HandlerOption, engine: Engine) -> str:
    """The option, or, if it takes only certain words, the words that the engine refuses."""
    support = option.on(engine)
    if not isinstance(support, Refused):
        return f"`{option.name}`"
    if get_origin(option.hint) is Literal:
        return ", ".join(f'`{option.name}="{word}"`' for word in option.refused_words(engine))
    allowed = [f'`"{word}"`' for word in (option.default, *support.allowed) if support.allowed]
    return f"`{option.name}` except {' and '.join(allowed)}" if allowed else f"`{option.name}`"


def _default(option: DeclaredOption) -> str:
    if option.shown_default:
        return option.shown_default
    match option.default:
        case None | ():
            return "none"
        case bool():
            return f"`{option.default}`"
        case int():
            return f"{option.default:,}"
        case _:
            return f'`"{option.default}"`'


def _meaning(option: DeclaredOption) -> str:
    return _markdown(option.text) + (f" See {option.see}." if option.see else "")


def _engines(option: HandlerOption) -> str:
    """The engines that support the option with at least one value besides the default."""
    names: Mapping[Engine, str] = {"local": "local", "spark": "Spark", "testing": "testing"}
    supported = [name for engine, name in names.items() if _is_supported(option, engine)]
    return "all" if len(supported) == len(names) else ", ".join(supported)


def _is_supported(option: HandlerOption, engine: Engine) -> bool:
    support = option.on(engine)
    return support is None or (isinstance(support, Refused) and bool(support.allowed))


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _markdown(text: str) -> str:
    return text.replace("``", "`").replace("|", r"\|")


_PIPELINES = "pipelines"
_SOURCES = {_PIPELINES: "pipelines/pipeline_options.py"}
_SOURCE_OF_HANDLERS = "options"

TABLES: Mapping[str, Callable[[], str]] = {
    "all": option_table,
    _PIPELINES: pipeline_table,
    "not on spark": lambda: support_table("spark"),
    "not in tests": lambda: support_table("testing"),
    "not in share groups": lambda: support_table("share"),
}


def begin_marker(name: str) -> str:
    return _BEGIN.format(name=name, source=_SOURCES.get(name, _SOURCE_OF_HANDLERS))


def filled(page: str) -> str:
    """The page with a current table between each pair of marker comments."""
    for name, make in TABLES.items():
        before, begin, rest = page.partition(f"{begin_marker(name)}\n")
        _, end, after = rest.partition(_END)
        if begin and end:
            page = f"{before}{begin}\n{make()}\n\n{end}{after}"
    return page
