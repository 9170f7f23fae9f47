"""The only writer to the terminal: results go to standard output, everything else to standard error.

Ruff forbids other writers in the command line, because most output contains foreign text: names of topics and groups,
records, errors. This module escapes it with ``core/text/foreign_text.py`` and hides the secrets of this process.
"""

import json
import sys
from collections.abc import Iterable
from typing import Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from penstock.core.settings import redacted, redacted_values
from penstock.core.text.foreign_text import printable_block, printable_json, printable_line


class Screen(Console):
    """A console that treats every ``str`` as foreign text: one line, without markup, emoji codes or links.

    For several lines, make several calls or use ``block``. For styles, use the argument ``style``, a ``Text``, or
    ``Text.from_markup`` with a literal text.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "highlight": False, "markup": False, "emoji": False})

    def render_str(self, text: str, **options: Any) -> Text:
        """Escape the text. Rich calls this for every ``str``, also in tables, so widths fit the escaped text."""
        return super().render_str(shown_line(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Escape all output. Segments with ``control`` come from Rich's live bars and pass unchanged."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else _harmless(segment)


out = Screen()
err = Screen(stderr=True)


def shown_line(text: str) -> str:
    """Return foreign text as one line that is safe to show: without secrets and control characters."""
    return printable_line(redacted(text))


def block(text: str, *, indent: str = "") -> Text:
    """Return several lines of foreign text, such as a traceback, for ``Screen.print``."""
    return Text(printable_block(redacted(text), indent=indent))


def print_line(text: str = "") -> None:
    """Print one line of a result, never wrapped. For many lines this is faster than a console."""
    typer.echo(shown_line(text))


def print_styled_lines(lines: Iterable[str]) -> None:
    """Print lines with escape sequences for styles. The caller has already escaped the foreign text in them."""
    for line in lines:
        typer.echo(line)


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Print ``value`` as JSON, without secrets, and escaped so that it is safe in a terminal."""
    print_json_data(redacted_values(value), indent=indent)


def print_json_data(value: Any, *, indent: int | None = None) -> None:
    """Print records as JSON, with secrets: another command may write them again, so they must be unchanged."""
    typer.echo(printable_json(json.dumps(value, indent=indent, ensure_ascii=False, default=str)))


def print_file(text: str) -> None:
    """Print text for a file or another program unchanged. Only for a terminal it is escaped."""
    typer.echo(printable_block(text)) if sys.stdout.isatty() else sys.stdout.write(text)


def _harmless(segment: Segment) -> Segment:
    text, style, _ = segment
    text = redacted(text)
    if not text.isprintable():
        text = "\n".join(map(printable_line, text.split("\n")))
    # Only foreign markup and escape sequences make links: our own texts have none.
    if style is not None and style.link:
        style = style.update_link(None)
    return Segment(text, style)
