"""Plain tables on standard output, with readable numbers, times and sizes."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.cells import cell_len
from rich.style import Style

from penstock.cli.console.screen import out, print_styled_lines, shown_line
from penstock.core.records.record import TopicPartition

# The styles of a group's status, by its name.
STATUS_STYLES = {"OK": "green", "WARN": "yellow", "STALL": "red", "STOP": "red", "REWIND": "magenta"}

_TICKS = "▁▂▃▄▅▆▇█"
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_KIBI = 1024


@dataclass(frozen=True)
class Styled:
    """A cell with a style, which only a terminal shows."""

    text: str
    style: str


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, right: Iterable[str] = ()) -> None:
    """Print a table. Columns in ``right`` are right-aligned. Rows are never truncated.

    If the terminal is too narrow, columns without any value are left out. If it still is, each row becomes a few lines
    of names and values.
    """
    print_styled_lines(table_lines(columns, rows, right=right))


def table_lines(columns: Sequence[str], rows: Iterable[Sequence[object]], *, right: Iterable[str] = ()) -> list[str]:
    """Return the lines. Not laid out by Rich, which takes longer for ten thousand groups than the requests do."""
    numbers = [column in set(right) for column in columns]
    cells: list[list[Styled | str]] = [[_plain(Styled(each, "bold")) for each in columns]]
    cells += [[_plain(each) for each in row] for row in rows]
    widths = _widths(cells)
    limit = screen_width()
    if limit is not None and _total(widths) > limit:
        kept = [at for at in range(len(columns)) if any(_text(row[at]) != "-" for row in cells[1:])]
        cells, numbers = [[row[at] for at in kept] for row in cells], [numbers[at] for at in kept]
        widths = _widths(cells)
        if _total(widths) > limit:
            return [line for row in cells[1:] for line in _stacked(cells[0], row, limit)]
    return [
        " ".join(
            _placed(cell, width, to_the_right=number) for cell, width, number in zip(row, widths, numbers, strict=True)
        ).rstrip()
        for row in cells
    ]


def _widths(cells: Sequence[Sequence[Styled | str]]) -> list[int]:
    return [max(map(_width, column)) for column in zip(*cells, strict=True)]


def _total(widths: Sequence[int]) -> int:
    """The width of a row, with a space between two cells."""
    return sum(widths) + len(widths) - 1


def screen_width() -> int | None:
    """Return None without a terminal: a program that reads a table needs one line per row, of any length."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked):
        return int(asked)
    return out.width if out.is_terminal else None


def _stacked(columns: Sequence[Styled | str], row: Sequence[Styled | str], limit: int) -> list[str]:
    """Return a row as names and values, as many per line as fit. Cells without a value are left out."""
    lines: list[str] = []
    used = 0
    for name, cell in zip(columns, row, strict=True):
        if _text(cell) == "-":
            continue
        head = _text(name).strip()
        width = len(head) + 1 + _width(cell)
        part = f"{_shown(Styled(head, 'bold'))} {_shown(cell).strip()}"
        if lines and used + 2 + width <= limit:
            lines[-1] += f"  {part}"
            used += 2 + width
        else:
            lines.append(f"  {part}" if lines else part)
            used = width + (2 if len(lines) > 1 else 0)
    return lines


def _text(cell: Styled | str) -> str:
    return cell.text if isinstance(cell, Styled) else cell


def _shown(cell: Styled | str) -> str:
    if isinstance(cell, Styled) and out.is_terminal:
        return Style.parse(cell.style).render(cell.text)
    return _text(cell)


def _width(cell: Styled | str) -> int:
    return cell_len(_text(cell))


def _placed(cell: Styled | str, width: int, *, to_the_right: bool) -> str:
    space = " " * (width - _width(cell))
    return space + _shown(cell) if to_the_right else _shown(cell) + space


def duration(seconds: float | None) -> str:
    """Format with at most two units: 1d 3h, 4m 05s, 12s."""
    if seconds is None:
        return "-"
    whole = int(seconds)
    if whole < _MINUTE:
        return f"{whole}s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}m {whole % _MINUTE:02}s"
    if whole < _DAY:
        return f"{whole // _HOUR}h {whole % _HOUR // _MINUTE:02}m"
    return f"{whole // _DAY}d {whole % _DAY // _HOUR}h"


def rate(per_second: float | None) -> str:
    if per_second is None:
        return "-"
    return f"{per_second:.1f}/s" if per_second < 100 else f"{per_second:,.0f}/s"  # noqa: PLR2004 - a matter of taste


def size(count: int | None) -> str:
    """Format bytes in a readable unit."""
    if count is None:
        return "-"
    value, units = float(count), iter(("B", "KiB", "MiB", "GiB", "TiB"))
    unit = next(units)
    while value >= _KIBI and (larger := next(units, None)) is not None:
        value, unit = value / _KIBI, larger
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def moment(seconds: float | None) -> str:
    """Format a timestamp in UTC, as Kafka's tools accept it."""
    if seconds is None:
        return "-"
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def partitions_text(tps: Iterable[TopicPartition]) -> str:
    """Format as Kafka's tool does: orders:0,1;payments:2."""
    by_topic: dict[str, list[str]] = {}
    for topic, partition in tps:
        by_topic.setdefault(topic, []).append(str(partition))
    return ";".join(f"{topic}:{','.join(numbers)}" for topic, numbers in by_topic.items())


def sparkline(values: Sequence[float], width: int = 20) -> str:
    shown = list(values)[-width:]
    top = max(shown, default=0)
    return "".join(_TICKS[round(each / top * (len(_TICKS) - 1))] if top else _TICKS[0] for each in shown)


def _plain(cell: object) -> Styled | str:
    """Escape a cell to one line: names and messages are foreign text, and terminals obey control characters."""
    if isinstance(cell, Styled):
        return Styled(shown_line(cell.text), cell.style)
    return "-" if cell is None or cell == "" else shown_line(str(cell))
