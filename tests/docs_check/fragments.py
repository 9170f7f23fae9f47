"""Executes the pieces of Python of a page that belong to no file.

A page is a module: its pieces are executed from top to bottom in one namespace, with all names of ``penstock``. So a
piece can use what an earlier piece has defined, and what a file on the page has defined that makes an app. Each piece
has a new ``app``, so two of them may declare the same handler. What else a piece takes for granted stands in a
``<!-- given`` above it. Nothing runs here: a handler is only declared, unless the piece calls it or tests it.
"""

import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import make_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import penstock
from docs_check.environment import page_id
from docs_check.pages import File, Fragment, Given, NotRun, steps_of
from penstock import App
from penstock.app.options import HANDLER_OPTIONS
from penstock.app.options.all_options import refuse_unsupported
from penstock.app.options.option_support import Engine
from penstock.errors import ConfigError

_MAKES_AN_APP = re.compile(r"^\w+ = App\(", re.MULTILINE)
# An option that is shown alone, such as `retry={...}`.
_OPTION = re.compile(r"^(\w+)=\S", re.MULTILINE)
# What handlers take and return on pages that need only the name of the type.
_TYPES: dict[str, list[tuple[str, type]]] = {
    "Order": [("id", int), ("customer", str), ("total", float)],
    **{name: [("id", int)] for name in ("Bill", "Click", "Job", "Payment", "Shipment")},
}


class FragmentError(AssertionError):
    """A piece of code on a page does not work."""


def fragments_of(page: Path) -> list[Fragment]:
    """The pieces of the page without a reason not to run them."""
    steps = steps_of(page)
    not_run = {step.line for step in steps if isinstance(step, NotRun)}
    return [step for step in steps if isinstance(step, Fragment) and step.line not in not_run]


def execute_fragments(page: Path) -> None:
    """Execute the pieces of the page. Raises ``FragmentError`` for one that fails."""
    pieces, is_given, apps = fragments_of(page), False, list[App]()

    def another_app() -> App:
        apps.append(App("shop"))
        return apps[-1]

    with _namespace(page) as names:
        names["another_app"] = another_app
        for step in steps_of(page):
            if not is_given:
                apps.clear()
                names["app"] = another_app()
            match step:
                case File(name, text) if name.endswith(".py") and _MAKES_AN_APP.search(text):
                    exec(compile(text, name, "exec"), names)
                case Given(line, text):
                    _execute(page, Fragment(line, text), names)
                case Fragment() if step in pieces:
                    _execute(page, step, names)
                    _check(page, step, [*apps, names["app"]], names)
            is_given = isinstance(step, Given)


@contextmanager
def _namespace(page: Path) -> Iterator[dict[str, Any]]:
    """A module, because dataclasses look for theirs."""
    module = ModuleType("page_" + re.sub(r"\W", "_", page_id(page)))
    names = vars(module)
    names.update({name: getattr(penstock, name) for name in penstock.__all__})
    names.update({name: make_dataclass(name, fields) for name, fields in _TYPES.items()})
    sys.modules[module.__name__] = module
    try:
        yield names
    finally:
        del sys.modules[module.__name__]


def _execute(page: Path, piece: Fragment, names: dict[str, Any]) -> None:
    try:
        exec(compile(piece.whole, str(page), "exec"), names)
    except Exception as error:
        lines = [
            frame.lineno or 1 for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(page)
        ]
        if isinstance(error, SyntaxError):
            lines = [error.lineno or 1]
        raise _wrong(page, piece.lines[lines[-1] - 1][0] if lines else piece.line, error) from error


def _check(page: Path, piece: Fragment, apps: Sequence[App], names: dict[str, Any]) -> None:
    """Declare the options that are shown alone. Find options that no engine supports."""
    try:
        for option in _OPTION.findall(piece.text):
            _declare(apps[-1], option, names[option])
        for app in apps:
            _check_engines(app, ["spark"] if page.name.startswith("spark") else ["local", "spark", "share"])
    except ConfigError as error:
        raise _wrong(page, piece.line, error) from error


def _declare(app: App, option: str, value: object) -> None:
    given: dict[str, Any] = {"dead_letter": "orders.dlq", option: value}
    if option in HANDLER_OPTIONS:
        app.consume("orders", **given)(lambda value: None)
    else:
        app.pipeline("orders", to="bills", value="at timestamp", **given)(lambda orders: orders)


def _check_engines(app: App, engines: Sequence[Engine]) -> None:
    """Raise if none of the engines supports the options of a handler."""
    for handler in app.handlers:
        refusals = []
        for engine in engines:
            try:
                refuse_unsupported(handler, engine)
            except ConfigError as error:
                refusals.append(error)
        if len(refusals) == len(engines):
            raise refusals[0]


def _wrong(page: Path, line: int, error: Exception) -> FragmentError:
    return FragmentError(f"{page_id(page)}, line {line}: {type(error).__name__}: {error}")
