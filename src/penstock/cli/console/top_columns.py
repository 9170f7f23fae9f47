"""The columns of ``penstock top``, and which of them fit into the width of the terminal."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from penstock.cli.console.screen import shown_line
from penstock.cli.console.tables import STATUS_STYLES, duration, rate, sparkline

TableRow = Mapping[str, Any]
_NAME_WIDTH = 16
_SHORT_SECONDS = 10


@dataclass(frozen=True)
class TopColumn:
    """A column. ``value`` is what rows are sorted by, ``text`` what is shown; ``need`` 0 is never left out."""

    title: str
    width: int
    value: Callable[[TableRow], Any]
    text: Callable[[TableRow], str]
    right: bool = True
    need: int = 0
    style: Callable[[TableRow], str] = lambda _row: ""


def fitting(columns: Sequence[TopColumn], width: int, *, name: int = _NAME_WIDTH) -> list[TopColumn]:
    """Return the columns that fit beside a ``name`` of a useful width: those with the highest ``need`` go first."""
    kept = list(columns)
    while sum(each.width + 1 for each in kept[1:]) + name > width:
        least = max(kept[1:], key=lambda each: each.need, default=None)
        if least is None or not least.need:
            break
        kept.remove(least)
    return kept


def head_line(columns: Sequence[TopColumn], width: int, *, sorted_by: str, descending: bool) -> Text:
    line = Text(style="bold")
    for column, room in zip(columns, _widths(columns, width), strict=True):
        arrow = ("▼" if descending else "▲") if column.title == sorted_by else ""
        line.append(_cell(arrow + column.title if column.right else column.title + arrow, room, column))
    return line


def row_line(columns: Sequence[TopColumn], width: int, row: TableRow, *, chosen: bool) -> Text:
    line = Text(style="reverse" if chosen else "")
    for column, room in zip(columns, _widths(columns, width), strict=True):
        cell = _cell(column.text(row), room, column)
        cell.stylize(column.style(row))
        line.append(cell)
    return line


def sorted_rows(rows: Iterable[TableRow], column: TopColumn, name: TopColumn, *, descending: bool) -> list[TableRow]:
    """Sort; rows without a value come last in both orders, and equal ones by name."""
    named = sorted(rows, key=lambda row: str(name.value(row)))
    known = [row for row in named if column.value(row) is not None]
    known.sort(key=column.value, reverse=descending)
    return known + [row for row in named if column.value(row) is None]


def _widths(columns: Sequence[TopColumn], width: int) -> list[int]:
    rest = sum(each.width + 1 for each in columns[1:])
    return [max(1, width - rest), *(each.width + 1 for each in columns[1:])]


def _cell(text: str, width: int, column: TopColumn) -> Text:
    """Return the text in exactly this width; all columns but the first begin with a space."""
    cell = Text(shown_line(text))
    space = 1 if column.width else 0
    cell.truncate(width - space, overflow="ellipsis")
    missing = width - space - cell.cell_len
    cell.pad_left(missing + space if column.right else space)
    cell.pad_right(0 if column.right else missing)
    return cell


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def age(value: float | None) -> str:
    """Format seconds; short times in milliseconds or with a digit."""
    if value is None or value >= _SHORT_SECONDS:
        return duration(value)
    return f"{value:.1f}s" if value >= 1 else f"{value * 1000:.0f}ms"


def _status(row: TableRow) -> str:
    return "ERROR" if row.get("error") else "LOST" if row.get("lost") else row.get("status") or "-"


def _status_style(row: TableRow) -> str:
    return STATUS_STYLES.get(_status(row), "red" if row.get("error") or row.get("lost") else "")


def _trend(row: TableRow) -> str:
    return sparkline([each or 0 for each in row.get("trend") or ()], 12)


def _figure(name: str) -> Callable[[TableRow], Any]:
    return lambda row: row.get(name)


def figure_column(
    title: str, width: int, name: str, show: Callable[[Any], str] = number, *, need: int = 0, right: bool = True
) -> TopColumn:
    return TopColumn(title, width, _figure(name), lambda row: show(row.get(name)), right=right, need=need)


def text_or_dash(value: Any) -> str:
    return "-" if value in {None, ""} else str(value)


_STATUS = TopColumn("STATUS", 6, _figure("severity"), _status, right=False, style=_status_style)
_RATES = (figure_column("IN", 8, "rate_in", rate, need=3), figure_column("OUT", 8, "rate_out", rate, need=2))

GROUPS = (
    TopColumn("GROUP", 0, _figure("name"), lambda row: str(row["name"]), right=False),
    _STATUS,
    figure_column("LAG", 11, "lag"),
    figure_column("BEHIND", 8, "lag_seconds", age, need=1),
    *_RATES,
    figure_column("DRAINED", 8, "drain", duration, need=4),
    TopColumn("TREND", 12, lambda row: (row.get("trend") or [None])[-1], _trend, right=False, need=7),
    figure_column("MEMBERS", 7, "members", need=5),
    figure_column("DEAD", 5, "dead", need=8),
    figure_column("APPS", 4, "apps", need=6),
    figure_column("STATE", 19, "state", text_or_dash, need=9, right=False),
)
PARTITIONS = (
    TopColumn(
        "PARTITION",
        0,
        lambda row: (row["topic"], row["partition"]),
        lambda row: f"{row['topic']}-{row['partition']}",
        right=False,
    ),
    TopColumn("STATUS", 6, _figure("status"), _status, right=False, style=_status_style),
    figure_column("LAG", 11, "lag"),
    figure_column("BEHIND", 8, "lag_seconds", age, need=1),
    *_RATES,
    figure_column("ABOVE", 7, "above", need=5),
    figure_column("COMMIT", 8, "commit_age", age, need=4),
    figure_column("OWNER", 22, "owner", text_or_dash, need=6, right=False),
)
APPS = (
    TopColumn("APP", 0, _figure("app"), lambda row: f"{row['app']} ({row['pid']})", right=False),
    figure_column("ENGINE", 6, "engine", text_or_dash, right=False, need=3),
    figure_column("UP", 8, "up", duration),
    figure_column("CPU", 6, "cpu", lambda value: "-" if value is None else f"{value:.0f}%"),
    figure_column("MEMORY", 8, "memory", lambda value: "-" if value is None else f"{value / 2**20:,.0f}M", need=2),
    figure_column("LAG", 11, "lag", need=0),
    figure_column("OUT", 8, "rate_out", rate, need=1),
    TopColumn("STATE", 8, _figure("state"), lambda row: text_or_dash(row.get("state")), right=False, need=4),
    figure_column("GROUPS", 24, "groups", lambda value: ", ".join(value or ()), right=False, need=5),
)
