"""The figures and the short tables of one handler in ``penstock top``, from a row of ``LiveAppSource``."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rich.text import Text

from penstock.cli.console.screen import out, shown_line
from penstock.cli.console.tables import duration, rate, size, sparkline
from penstock.cli.console.top_columns import (
    TableRow,
    TopColumn,
    age,
    figure_column,
    fitting,
    head_line,
    number,
    row_line,
    text_or_dash,
)
from penstock.core.text.plurals import counted

# The narrowest figure, such as "in flight 1,234 of 10,000", and its label.
_FIGURE_WIDTH, _LABEL_WIDTH = 30, 11
_FIRST_COLUMN = 30
# Wider tables of short cells are hard to read across.
_WIDEST = 90
_THREE_DIGITS = 100
_TREND_POINTS = 8
_EACH_TABLE = 2  # lines: a header and one row
_FRAME = re.compile(r'^  File "(?:.*[/\\])?([^"]*)", line (\d+), in (.*)$', re.MULTILINE)


@dataclass
class ShortTable:
    """A table of which as many rows are shown as fit."""

    columns: Sequence[TopColumn]
    rows: Sequence[TableRow]
    widest: int = _WIDEST
    shown: int = field(default=0)


def figure_lines(row: TableRow, width: int, *, now: float) -> list[Text]:
    """Return the figures of a handler in columns, and a line for what stands in its way."""
    figures = [(label, value, style) for label, value, style in _figures(row, now) if value]
    columns = max(1, width // _FIGURE_WIDTH)
    lines = [
        Text().join(_figure(each, width // columns) for each in figures[start : start + columns])
        for start in range(0, len(figures), columns)
    ]
    if row.get("breaker"):
        lines.append(Text(shown_line(f"The breaker is open: {_first_line(row['breaker'])}"), style="yellow"))
    if (control := row.get("control")) and control["paused_partitions"] and not control["paused"]:
        lines.append(Text(shown_line(f"Paused: {', '.join(control['paused_partitions'])}"), style="yellow"))
    return lines


def _figure(given: tuple[str, str, str], width: int) -> Text:
    label, value, style = given
    shown = Text(shown_line(value), style=style)
    shown.truncate(width - _LABEL_WIDTH - 1, overflow="ellipsis", pad=True)
    return Text.assemble((f"{label:<{_LABEL_WIDTH}}", "dim"), shown, " ")


def _figures(row: TableRow, now: float) -> Iterable[tuple[str, str, str]]:
    """Yield label, value and style. A figure without a value is left out."""
    trend = sparkline([each or 0 for _, each in row["rates"][-_TREND_POINTS:]]) if row["rate"] else ""
    yield "rate", f"{rate(row['rate'])} {trend}", ""
    if "in_flight" in row:
        yield "in flight", f"{number(row['in_flight'])} of {number(row['max_in_flight'])}", _full(row, "in_flight")
        yield "bytes", _sizes(row["bytes"], row["max_bytes"]), _full(row, "bytes")
        yield "workers", f"{number(row['busy'])} of {number(row['concurrency'])} busy", ""
        yield "auto", _found(row, now), ""
        yield "lanes", number(row["lanes"]), ""
        yield "waiting", number(row["waiting"]), ""
        oldest = row["oldest"]
        yield "oldest", "-" if oldest is None else age(max(0.0, now - oldest)), ""
        yield "retries", number(row["retrying"]), "yellow" if row["retrying"] else ""
    yield "read", number(row.get("read")), ""
    yield "dead", number(row.get("dead_lettered")), "red" if row.get("dead_lettered") else ""
    yield "breaker", "open" if row.get("breaker") else "not open", "yellow" if row.get("breaker") else ""
    control = row.get("control")
    if control is not None:
        paused, some = control["paused"], control["paused_partitions"]
        what = "yes" if paused else counted(len(some), "partition") if some else "no"
        yield "paused", what, "yellow" if paused or some else ""
        yield "rate limit", control["rate"] or "none", ""


def _full(row: TableRow, name: str) -> str:
    most = row[f"max_{name}"]
    return "yellow" if most and row[name] >= most else ""


def _sizes(count: int, most: int) -> str:
    """Return both with at most three digits, such as 4.9 of 224 MiB: they must fit into a figure."""
    (value, unit), (limit, its_unit) = _size(count), _size(most)
    return f"{value} of {limit} {unit}" if unit == its_unit else f"{value} {unit} of {limit} {its_unit}"


def _size(count: int) -> tuple[str, str]:
    value, unit = size(count).split()
    return f"{float(value):.0f}" if float(value) >= _THREE_DIGITS else value.removesuffix(".0"), unit


def _found(row: TableRow, now: float) -> str:
    """Return what ``concurrency="auto"`` has found; nothing for a handler with a number of its own."""
    if not row["is_auto"]:
        return ""
    if not row["found"]:
        return f"{row['concurrency']}, as at first"
    ago = duration(max(0.0, now - row["found"][-1][0])).split()[0]
    return f"found {row['concurrency']}, {ago} ago"


def table_lines(row: TableRow, width: int, height: int, *, now: float) -> list[Text]:
    """Return the tables of a handler that have rows, as many of them as fit into this height."""
    tables = [
        ShortTable(_AT_WORK, row.get("at_work", ())),
        ShortTable(_LANES, [each for each in row.get("longest_lanes", ()) if each["waiting"]]),
        ShortTable(_RETRIES, row.get("retries", ())),
        ShortTable(_ERRORS, [_error(each, now) for each in row["errors"]], widest=width),
    ]
    filled = [each for each in tables if each.rows]
    if not filled:
        said = Text("No record is at work, waits or has failed.", style="dim")
        return [Text(), *said.wrap(out, width)][:height]
    return [line for each in share(filled, height) for line in [Text(), *_lines(each, width)]]


def share(tables: Sequence[ShortTable], height: int) -> list[ShortTable]:
    """Choose how many rows of each table are shown: first one of each, in their order, then more in turn."""
    kept: list[ShortTable] = []
    for each in tables:
        if height > _EACH_TABLE:
            each.shown = 1
            height -= _EACH_TABLE + 1  # and an empty line before it
            kept.append(each)
    while height > 0 and (longer := [each for each in kept if each.shown < len(each.rows)]):
        for each in longer[:height]:
            each.shown += 1
        height -= len(longer)
    return kept


def _lines(table: ShortTable, width: int) -> list[Text]:
    width = min(width, table.widest)
    columns = fitting(table.columns, width, name=_FIRST_COLUMN)
    head = head_line(columns, width, sorted_by="", descending=False)
    return [head, *(row_line(columns, width, each, chosen=False) for each in table.rows[: table.shown])]


def _error(error: TableRow, now: float) -> TableRow:
    frames = _FRAME.findall(error["traceback"])
    file, line, function = frames[-1] if frames else ("", "", "")
    topic, partition, offset = error["last"] or ("", "", "")
    return {
        "reason": _first_line(error["reason"]),
        "count": error["count"],
        "ago": max(0.0, now - error["last_at"]),
        "where": f"{file}:{line} {function}" if frames else None,
        "last": f"{topic}-{partition}@{offset}" if topic else None,
    }


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0].strip()


def _record(title: str) -> TopColumn:
    def text(row: TableRow) -> str:
        return f"{row['topic']}-{row['partition']}@{row['offset']}"

    return TopColumn(title, 0, text, text, right=False)


def _texts(title: str, width: int, name: str, *, need: int = 0) -> TopColumn:
    return figure_column(title, width, name, text_or_dash, need=need, right=False)


_KEY = _texts("KEY", 14, "key", need=1)
_AT_WORK = (
    _record("LONGEST AT WORK"),
    _KEY,
    figure_column("ATTEMPT", 7, "attempt"),
    figure_column("FOR", 7, "seconds", age),
)
_LANES = (
    TopColumn("LONGEST LANES", 0, lambda row: row["name"], lambda row: str(row["name"]), right=False),
    TopColumn(
        "PARTITION", 20, lambda row: row["topic"], lambda row: f"{row['topic']}-{row['partition']}", right=False, need=1
    ),
    figure_column("WAITING", 8, "waiting"),
)
_RETRIES = (
    _record("RETRIES"),
    _KEY,
    figure_column("ATTEMPT", 7, "attempt"),
    figure_column("BEHIND", 7, "behind", need=2),
    figure_column("NEXT IN", 8, "seconds", age),
)
_ERRORS = (
    TopColumn("ERRORS", 0, lambda row: row["reason"], lambda row: row["reason"], right=False),
    figure_column("COUNT", 6, "count"),
    figure_column("AGO", 7, "ago", duration, need=2),
    _texts("WHERE", 22, "where", need=1),
    _texts("LAST RECORD", 22, "last", need=3),
)
