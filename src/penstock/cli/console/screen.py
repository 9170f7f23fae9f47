"""The terminal: results go to standard output, everything else to standard error.

Nothing else in the command line writes there (ruff bans it), because most of what we print holds text of others: names
of topics and groups, records, errors. It is made harmless on its way, by ``core/text/foreign_text.py``,
and loses the secrets that this process was given.
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
    """A console that takes every ``str`` for the text of others: one line, without markup, emoji codes or links.

    Several lines are made by several calls, or with ``block``. Styles of our own come as a ``style``, as a ``Text``, or
    by ``Text.from_markup`` of a text that is written out in the code.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "highlight": False, "markup": False, "emoji": False})

    def render_str(self, text: str, **options: Any) -> Text:
        """Rich calls this for every ``str``, also in tables; so widths are those of what is shown."""
        return super().render_str(shown_line(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Every text leaves through here, whatever made it. Segments with ``control`` are Rich's own, of live bars."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else _harmless(segment)


out = Screen()
err = Screen(stderr=True)


def shown_line(text: str) -> str:
    """Text of others in one line, as it may be shown: without secrets, and without what a terminal obeys."""
    return printable_line(redacted(text))


def block(text: str, *, indent: str = "") -> Text:
    """Several lines of others, for ``Screen.print``; a traceback for example."""
    return Text(printable_block(redacted(text), indent=indent))


def print_line(text: str = "") -> None:
    """One line of a result, never wrapped; quicker than a console where there are many."""
    typer.echo(shown_line(text))


def print_styled_lines(lines: Iterable[str]) -> None:
    """Lines with escape sequences of our own; what others wrote in them must have been made harmless before."""
    for line in lines:
        typer.echo(line)


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """JSON that means exactly ``value``, but for secrets, and can be looked at in a terminal."""
    print_json_data(redacted_values(value), indent=indent)


def print_json_data(value: Any, *, indent: int | None = None) -> None:
    """The same for records, which another command may write again: nothing in them is replaced."""
    typer.echo(printable_json(json.dumps(value, indent=indent, ensure_ascii=False, default=str)))


def print_file(text: str) -> None:
    """What is meant for a file or another program, byte for byte; a terminal gets it as it can be looked at."""
    typer.echo(printable_block(text)) if sys.stdout.isatty() else sys.stdout.write(text)


def _harmless(segment: Segment) -> Segment:
    text, style, _ = segment
    text = redacted(text)
    if not text.isprintable():
        text = "\n".join(map(printable_line, text.split("\n")))
    # Links are made by markup and by escape sequences only, and none of them is ours.
    if style is not None and style.link:
        style = style.update_link(None)
    return Segment(text, style)
