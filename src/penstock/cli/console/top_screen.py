"""What ``penstock top`` shows: groups, one group or apps, as rows that keys sort, filter and open; and one app."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from rich.text import Text

from penstock.cli.console.handler_commands import CommandSender
from penstock.cli.console.process_figures import ProcessFigures
from penstock.cli.console.screen import out, shown_line
from penstock.cli.console.top_app import AppView
from penstock.cli.console.top_columns import (
    APPS,
    GROUPS,
    PARTITIONS,
    TableRow,
    TopColumn,
    age,
    fitting,
    head_line,
    number,
    row_line,
    sorted_rows,
)
from penstock.core.text.plurals import counted
from penstock.dashboard import ChannelState, topic_of
from penstock.errors import PenstockError

States = Callable[[str], ChannelState]
"""Returns the state of a topic of the feed."""

_GROUPS, _APPS = "groups", "apps"
# The processor time and memory of a process on another machine.
_ELSEWHERE = {"cpu": None, "memory": None}
_AROUND = 4  # lines: title, header of the table, an empty line or trouble, keys
_STEPS = {"down": 1, "j": 1, "up": -1, "k": -1, "page down": 10, "page up": -10, "home": -(10**9), "end": 10**9}
_LONGEST_FILTER = 60
_YES_NO = "? y/n"


@dataclass
class _Table:
    """What the user has chosen in one table."""

    columns: Sequence[TopColumn]
    sort: int
    descending: bool
    filter: str = ""
    chosen: str | None = None
    top: int = 0
    keys: list[str] = field(default_factory=list)


class TopScreen:
    """The state of the screen. ``press`` takes keys, ``frame`` draws; neither waits for anything.

    ``commands`` sends what the user confirms to running apps.
    """

    def __init__(
        self,
        *,
        figures: ProcessFigures,
        commands: CommandSender,
        start: str = _GROUPS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._place = start
        self._group: str | None = None
        self._app: AppView | None = None
        self._commands = commands
        self._clock = clock
        self._figures = figures
        self._tables = {
            _GROUPS: _Table(GROUPS, sort=2, descending=True),
            _APPS: _Table(APPS, sort=3, descending=True),
            "group": _Table(PARTITIONS, sort=2, descending=True),
        }
        self._typing = False
        self._frozen: dict[str, ChannelState] | None = None
        self._frozen_at: float | None = None
        self.ended = False

    @property
    def topics(self) -> list[str]:
        """The topics of the feed that the screen needs now, the most important one first."""
        if self._app is not None:
            return [self._app.topic]
        if self._place == "group":
            return [topic_of("group", name=self._group or "")]
        return [_GROUPS] if self._place == _GROUPS else [_APPS, _GROUPS]

    @property
    def visible(self) -> list[str]:
        """The keys of the rows on the screen."""
        return [] if self._app is not None else self._table.keys

    def press(self, key: str, states: States) -> None:
        """Do what the key stands for. Unknown keys do nothing."""
        if self._app is not None and self._app.press(key, states(self._app.topic)):
            return
        if self._typing:
            self._type(key)
        elif key in {"p", " "}:
            self._freeze(states)
        elif key in _STEPS and self._app is None:
            self._move(_STEPS[key], states)
        elif (act := self._keys().get(key)) is not None:
            act()

    def _keys(self) -> dict[str, Callable[[], None]]:
        everywhere: dict[str, Callable[[], None]] = {
            "q": partial(setattr, self, "ended", True),
            "1": partial(self._go, _GROUPS),
            "2": partial(self._go, _APPS),
            **dict.fromkeys(("escape", "backspace"), self._back),
        }
        if self._app is not None:
            return everywhere
        table, other = self._table, _APPS if self._place == _GROUPS else _GROUPS
        sort, back = (partial(self._sort_by, step) for step in (1, -1))
        return {
            **everywhere,
            "tab": partial(self._go, other),
            "/": partial(setattr, self, "_typing", True),
            "r": partial(setattr, table, "descending", not table.descending),
            **dict.fromkeys(("s", "right", ">"), sort),
            **dict.fromkeys(("left", "<"), back),
            "enter": self._open,
        }

    def rows(self, states: States) -> list[TableRow]:
        """Return the rows of the table, filtered and sorted."""
        table = self._table
        words = table.filter.lower().split()
        found = [row for row in self._all_rows(states) if all(word in _searched(row) for word in words)]
        return sorted_rows(found, table.columns[table.sort], table.columns[0], descending=table.descending)

    def frame(self, states: States, *, width: int, height: int | None, brokers: str | None) -> Text:
        """Return the picture; without a height, all rows."""
        if self._app is not None:
            return self._app_frame(self._app, states, width, height or out.height, brokers)
        table, rows = self._table, self.rows(self._now(states))
        columns = fitting(table.columns, width)
        keys = [self._key(row) for row in rows]
        room = len(rows) if height is None else max(1, height - _AROUND)
        at = keys.index(table.chosen) if table.chosen in keys else None
        if at is not None:
            table.top = min(max(table.top, at - room + 1), at)
        table.top = max(0, min(table.top, len(rows) - room))
        shown = rows[table.top : table.top + room]
        table.keys = keys[table.top : table.top + room]
        sorted_by = table.columns[table.sort].title
        trouble = next((state.trouble for topic in self.topics if (state := states(topic)).trouble), None)
        lines = [
            self._title(self._summary(rows), width, brokers),
            head_line(columns, width, sorted_by=sorted_by, descending=table.descending),
            *(row_line(columns, width, row, chosen=self._key(row) == table.chosen) for row in shown),
        ]
        if not rows:
            said = self._nothing(trouble, is_read=states(self.topics[0]).reads > 0)
            lines += [line for each in said for line in each.wrap(out, width)]
        elif trouble is not None:
            lines.append(Text(shown_line(str(trouble)), style="bold red"))
        if height is not None:
            foot = self._foot(width, states(self.topics[0]))
            lines = lines[: height - 1] + [Text()] * (height - 1 - len(lines)) + [foot]
        return _joined(lines, width)

    def _app_frame(self, app: AppView, states: States, width: int, height: int, brokers: str | None) -> Text:
        state, now = self._now(states)(app.topic), self._frozen_at or self._clock()
        body = app.lines(state, width=width, height=height - 2, now=now)  # without the title and the foot line
        lines = [self._title(app.title(state, now=now), width, brokers), *body][: height - 1]
        return _joined([*lines, self._foot(width, states(app.topic))], width)

    @property
    def _table(self) -> _Table:
        return self._tables[self._place]

    def _now(self, states: States) -> States:
        frozen = self._frozen
        if frozen is None:
            return states
        return lambda topic: frozen.get(topic) or states(topic)

    def _all_rows(self, states: States) -> Iterable[TableRow]:
        rows = states(self.topics[0]).rows
        if self._place == _GROUPS:
            return rows.values()
        if self._place == _APPS:
            return self._app_rows(rows, states(_GROUPS).rows)
        members = {row["id"]: row["label"] for key, row in rows.items() if key.startswith("member ")}
        parts = (row for key, row in rows.items() if key.startswith("partition "))
        return [{**row, "owner": members.get(row.get("member"))} for row in parts]

    def _app_rows(self, rows: Mapping[str, TableRow], groups: Mapping[str, TableRow]) -> Iterable[TableRow]:
        for row in rows.values():
            mine = [groups[name] for name in row["groups"] if name in groups]
            yield {
                **row,
                "up": self._clock() - row["since"],
                "lag": _sum(each.get("lag") for each in mine),
                "rate_out": _sum(each.get("rate_out") for each in mine),
                "state": "stopping" if row.get("stopping") else row.get("state") or "running",
                **(self._figures.of(row["pid"]) if row.get("here", True) else _ELSEWHERE),
            }

    def _key(self, row: TableRow) -> str:
        if self._place == "group":
            return f"partition {row['topic']}/{row['partition']}"
        return str(row["name"] if self._place == _GROUPS else row.get("id", row["pid"]))

    def _summary(self, rows: Sequence[TableRow]) -> str:
        lag = _sum(row.get("lag") for row in rows)
        if self._place == "group":
            return f"{self._group or ''} · {counted(len(rows), 'partition')} · lag {number(lag)}"
        if self._place == _APPS:
            return f"{counted(len(rows), 'app')} on this machine"
        behind = max((row["lag_seconds"] for row in rows if row.get("lag_seconds") is not None), default=None)
        return f"{counted(len(rows), 'group')} · lag {number(lag)} · behind {age(behind)}"

    def _title(self, what: str, width: int, brokers: str | None) -> Text:
        line = Text.assemble(("penstock top", "bold"), " · ", shown_line(what))
        if self._app is None and (self._table.filter or self._typing):
            line.append(f" · filter {shown_line(self._table.filter)}{'▏' if self._typing else ''}", style="cyan")
        if self._frozen is not None:
            line.append(" · FROZEN", style="bold yellow")
        right = shown_line(f"{brokers or 'no broker'} {time.strftime('%H:%M:%S')}")
        space = width - line.cell_len - len(right)
        return line if space < 1 else line.append(" " * space + right, style="dim")

    def _nothing(self, trouble: PenstockError | None, *, is_read: bool) -> list[Text]:
        if trouble is not None:
            lines = [Text(shown_line(trouble.problem), style="bold red"), Text(shown_line(trouble.hint))]
            return [Text(), *lines, Text("This page continues as soon as a broker answers.", style="dim")]
        if not is_read:
            return [Text(), Text("Reading from Kafka …", style="dim")]
        if self._table.filter:
            return [Text(), Text("No row matches the filter. Press / to change it, and Escape to clear it.")]
        none = {
            _GROUPS: "The cluster has no groups yet. This starts one that comes with Penstock: penstock demo",
            _APPS: "No app runs on this machine. This starts one: penstock run shop:app",
        }
        return [Text(), Text(none.get(self._place, "The group owns no partitions and has committed nothing."))]

    def _foot(self, width: int, state: ChannelState) -> Text:
        if self._app is not None and (question := self._app.question) is not None:
            line = Text(shown_line(question), style="bold reverse")
            line.truncate(max(1, width - len(_YES_NO)), overflow="ellipsis")
            return line.append(_YES_NO)
        if self._typing:
            return Text("type to filter · Enter keeps it · Escape clears it", style="dim")
        freeze = ("p", "unfreeze" if self._frozen else "freeze")
        if self._app is not None:
            return _keys_line([("q", "quit"), *self._app.keys(state), freeze], width)
        opened = [("Esc", "back")] if self._place == "group" else [("↑↓ Enter", "open")]
        other = {_GROUPS: [("2", "apps")], _APPS: [("1", "groups")]}.get(self._place, [])
        keys = [("q", "quit"), *opened, ("s", "sort"), ("r", "reverse"), ("/", "filter"), *other, freeze]
        return _keys_line(keys, width)

    def _freeze(self, states: States) -> None:
        if self._frozen is None:
            self._frozen, self._frozen_at = {topic: states(topic) for topic in self.topics}, self._clock()
        else:
            self._frozen = self._frozen_at = None

    def _type(self, key: str) -> None:
        table = self._table
        if key in {"enter", "escape"}:
            self._typing = False
            table.filter = "" if key == "escape" else table.filter
        elif key == "backspace":
            table.filter = table.filter[:-1]
        elif len(key) == 1 and len(table.filter) < _LONGEST_FILTER:
            table.filter += key

    def _sort_by(self, step: int) -> None:
        table = self._table
        table.sort = (table.sort + step) % len(table.columns)
        table.descending = table.columns[table.sort].right

    def _move(self, step: int, states: States) -> None:
        keys = [self._key(row) for row in self.rows(self._now(states))]
        if keys:
            at = keys.index(self._table.chosen) + step if self._table.chosen in keys else self._table.top
            self._table.chosen = keys[min(max(at, 0), len(keys) - 1)]

    def _open(self) -> None:
        chosen = self._table.chosen
        if chosen is None:
            return
        if self._place == _APPS:
            self._go(_APPS)
            self._app = AppView(chosen, self._commands)
        elif self._place == _GROUPS:
            self._group = chosen
            self._tables["group"].chosen, self._tables["group"].filter = None, ""
            self._go("group")

    def _back(self) -> None:
        if self._app is not None:
            self._go(_APPS)
        elif self._table.filter:
            self._table.filter = ""
        elif self._place != _GROUPS:
            self._go(_GROUPS)
        else:
            self._table.chosen = None

    def _go(self, place: str) -> None:
        self._place, self._frozen, self._frozen_at, self._app = place, None, None, None


def _joined(lines: Sequence[Text], width: int) -> Text:
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return Text("\n").join(lines)


def _keys_line(keys: Iterable[tuple[str, str]], width: int) -> Text:
    line = Text()
    for key, what in keys:
        part = Text.assemble((key, "bold"), f" {what}  ", style="dim")
        if line.cell_len + part.cell_len <= width:
            line.append(part)
    return line


def _searched(row: TableRow) -> str:
    return " ".join(
        str(row.get(name) or "") for name in ("name", "state", "status", "topic", "partition", "app", "owner", "groups")
    ).lower()


def _sum(values: Iterable[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return sum(known) if known else None
