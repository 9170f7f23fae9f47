"""Draws the steps of a lesson. A grid that is wider than the terminal continues below."""

from collections.abc import Iterator, Mapping

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from penstock.cli.console.screen import out
from penstock.learn.course import Lesson
from penstock.learn.picture import Cell, FactTable, Grid, GridRow, LessonStep, Mark

_MARKS: Mapping[Mark, tuple[str, str]] = {
    Mark.DONE: ("■", "green"),
    Mark.RUNNING: ("▶", "cyan"),
    Mark.WAITING: ("□", "dim"),
    Mark.AGAIN: ("●", "yellow"),
    Mark.FAILED: ("✗", "bold red"),
    Mark.POINTER: ("↑", "bold"),
    Mark.NOTHING: ("·", "dim"),
}
_NAMES: Mapping[str, str] = {"A": "cyan", "B": "magenta", "·": "dim"}
"""The styles of texts in cells."""
_INDENT = 2
# Longer lines of text are hard to read.
_WIDEST_TEXT = 80


def show_heading(lesson: Lesson) -> None:
    out.print()
    out.print(Text(f"Lesson {lesson.number}: {lesson.title}", style="bold reverse"))


def show_step(step: LessonStep, number: int) -> None:
    out.print()
    _paragraph(Text(f"{number}. {step.title}", style="bold"))
    _paragraph(Text(step.doing))
    for picture in step.pictures:
        out.print()
        if isinstance(picture, Grid):
            for line in grid_lines(picture, out.width):
                out.print(line, no_wrap=True, crop=False)
        else:
            _print_facts(picture)
    out.print()
    _paragraph(Text.assemble(("What to see: ", "bold cyan"), step.see))


def _paragraph(text: Text) -> None:
    out.print(text, width=min(out.width, _WIDEST_TEXT))


def grid_lines(grid: Grid, width: int) -> Iterator[Text]:
    """The title, the rows in as many blocks as the width needs, and the legend."""
    indent = " " * _INDENT
    yield Text(f"{indent}{grid.title}", style="italic")
    longest = max((len(column) for column in grid.columns), default=0)
    wide = longest + 1 if longest else 1  # time needs no gaps
    left = _INDENT + max(len(row.label) for row in grid.rows) + (not longest)
    fit = max(1, (width - left) // wide)
    for at in range(0, len(grid.columns), fit):
        heads = grid.columns[at : at + fit]
        if any(heads):
            yield Text(" " * left + "".join(head.rjust(wide) for head in heads), style="dim")
        for row in grid.rows:
            yield _row(row, slice(at, at + fit), left, wide)
    if grid.legend:
        yield from _legend(grid.legend, width)


def _row(row: GridRow, part: slice, left: int, wide: int) -> Text:
    line = Text(f"{' ' * _INDENT}{row.label}".ljust(left))
    points = Mark.POINTER in row.cells
    for cell in row.cells[part]:
        glyph, style = (" ", "") if points and cell is Mark.NOTHING else _drawn(cell)
        line.append(glyph.rjust(wide), style=style)
    line.rstrip()
    return line


def _drawn(cell: Cell) -> tuple[str, str]:
    return _MARKS[cell] if isinstance(cell, Mark) else (cell, _NAMES.get(cell, ""))


def _legend(legend: Mapping[Mark, str], width: int) -> Iterator[Text]:
    line = Text(" " * _INDENT)
    for mark, meaning in legend.items():
        glyph, style = _MARKS[mark]
        if len(line) > _INDENT and len(line) + len(meaning) + 4 > width:
            yield line
            line = Text(" " * _INDENT)
        line.append(glyph, style=style).append(f" {meaning}  ", style="dim")
    yield line


def _print_facts(facts: FactTable) -> None:
    table = Table(box=None, pad_edge=False, title=facts.title, title_justify="left", title_style="italic")
    table.show_header = any(facts.columns)
    for column in facts.columns:
        table.add_column(column, header_style="dim")
    for row in facts.rows:
        table.add_row(*row)
    out.print(Padding(table, (0, 0, 0, _INDENT)))
