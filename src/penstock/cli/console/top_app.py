"""One running app in ``penstock top``: a handler at a time, and its pause."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

from rich.text import Text

from penstock.cli.console.handler_commands import CommandSender, HandlerCommand
from penstock.cli.console.screen import out, shown_line
from penstock.cli.console.tables import duration
from penstock.cli.console.top_app_tables import figure_lines, table_lines
from penstock.cli.console.top_columns import TableRow
from penstock.core.text.plurals import counted
from penstock.dashboard import ChannelState, topic_of

# A run writes its picture about once a second. So many reads of the feed without one are no accident.
_READS_WITHOUT_PICTURE = 5
_OLD_SECONDS = 5.0
_NEXT = {"tab": 1, "right": 1, "left": -1}
_MOST_NOTICE_LINES = 3


class AppView:
    """What is shown of one run: which handler, and the question before a command. ``commands`` sends it."""

    def __init__(self, run: str, commands: CommandSender) -> None:
        self.topic = topic_of("app", run=run)
        self._commands = commands
        self._handler: str | None = None
        self._question: HandlerCommand | None = None

    def press(self, key: str, state: ChannelState) -> bool:
        """Do what the key stands for in this view; return whether it means something here."""
        if self._question is not None:
            if key in {"y", "Y"}:
                self._commands.send(self._question)
            self._question = None
            return True
        self._commands.forget()
        if key == "x":
            self._ask(state)
        elif key in _NEXT:
            keys = _handlers(state)
            if keys:
                self._handler = keys[(keys.index(self._shown(state) or keys[0]) + _NEXT[key]) % len(keys)]
        else:
            return False
        return True

    def title(self, state: ChannelState, *, now: float) -> str:
        run = state.rows.get("run")
        if run is None:
            return "app"
        where = "" if run["here"] else f" on {run['host']}"
        up = duration(max(0.0, now - run["since"]))
        return f"{run['app']} ({run['pid']}){where} · up {up}{' · stopping' if run['stopping'] else ''}"

    def lines(self, state: ChannelState, *, width: int, height: int, now: float) -> list[Text]:
        """Return the picture without title and foot line, and at its end what came of a command."""
        notice = self._notice(width)[: max(0, height)]
        room = height - len(notice)
        try:
            found = self._body(state, width, room, now)[: max(0, room)]
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            said = "What this app reports cannot be shown. It may have another version of Penstock."
            found = _said(said, width, "yellow")[: max(0, room)]
        return [*found, *[Text()] * (room - len(found)), *notice]

    def keys(self, state: ChannelState) -> list[tuple[str, str]]:
        """Return the keys for the foot line."""
        shown = self._shown(state)
        keys = [("Esc", "back")]
        if shown is not None:
            keys.append(("x", "resume" if _is_paused(state.rows[shown]) else "pause"))
        return [*keys, ("Tab", "next handler")] if len(_handlers(state)) > 1 else keys

    @property
    def question(self) -> str | None:
        """The question that waits for y or n, without the question mark."""
        asked = self._question
        return None if asked is None else f"{asked.action.capitalize()} {asked.handler} of {asked.app}"

    def _ask(self, state: ChannelState) -> None:
        """Ask before a pause or a resume, or say why there is none."""
        shown, run = self._shown(state), state.rows.get("run")
        if state.trouble is not None:
            self._commands.refuse(state.trouble.problem)
        elif run is None or shown is None:
            self._commands.refuse("No handler is shown. `penstock pause NAME` pauses all handlers of an app.")
        elif not run["here"]:
            self._commands.refuse(f"{run['app']} runs on {run['host']}. Pause it there, with `penstock pause`.")
        elif not self._commands.waits:
            row = state.rows[shown]
            action: Literal["pause", "resume"] = "resume" if _is_paused(row) else "pause"
            self._question = HandlerCommand(action, run["app"], run["pid"], run["since"], row["name"])

    def _shown(self, state: ChannelState) -> str | None:
        """Return the key of the handler that is shown: the first one until another is chosen."""
        keys = _handlers(state)
        return self._handler if self._handler in keys else next(iter(keys), None)

    def _notice(self, width: int) -> list[Text]:
        answer = self._commands.answer
        if answer is None:
            return []
        style = "bold red" if answer.is_error else "bold" if answer.final else "dim"
        return _said(answer.text, width, style)[:_MOST_NOTICE_LINES]

    def _body(self, state: ChannelState, width: int, height: int, now: float) -> list[Text]:
        run, shown = state.rows.get("run"), self._shown(state)
        trouble = [] if state.trouble is None else _said(state.trouble.problem, width, "bold red")
        if run is None:
            return [Text(), *(trouble or _said("Reading what the app does …", width, "dim"))]
        if shown is None:
            return [Text(), *(trouble or _said(_no_handler(run, state.reads), width))]
        row = state.rows[shown]
        lines = [
            _heading(row, _handlers(state).index(shown) + 1, len(_handlers(state))),
            *figure_lines(row, width, now=now),
        ]
        lines += trouble or _missing(run, row, width, now)
        return [*lines, *table_lines(row, width, height - len(lines), now=now)]


def _handlers(state: ChannelState) -> Sequence[str]:
    return [key for key in state.rows if key.startswith("handler ")]


def _is_paused(row: TableRow) -> bool:
    control = row.get("control")
    return control is not None and bool(control["paused"])


def _heading(row: TableRow, at: int, count: int) -> Text:
    which = f" ({at} of {count})" if count > 1 else ""
    order = f"order {row['order']}"
    members = f" · {counted(row['members'], 'member')}" if row["members"] else ""
    rest = f"{which} · {row['state']} · group {row['group']} · {', '.join(row['topics'])} · {order}{members}"
    return Text.assemble((shown_line(row["name"]), "bold"), shown_line(rest))


def _no_handler(run: TableRow, reads: int) -> str:
    if run["is_known"]:
        return "No handler has started yet: the app is joining its group."
    if run["engine"] == "spark":
        return (
            "An app on Spark does not report its workers. The page Spark of `penstock ui` shows its slices and batches."
        )
    if reads < _READS_WITHOUT_PICTURE:
        return "Waiting for the app to say what it does …"
    return "The app does not say what it does. It may hang, or have an older version of Penstock."


def _missing(run: TableRow, row: TableRow, width: int, now: float) -> list[Text]:
    """Return a sentence about what is not known of the handler."""
    old = 0.0
    with suppress(TypeError):
        old = now - run["at"]
    if not row["members"]:
        said = "Its workers and lanes are not known: none of its members has answered."
    elif not run["here"]:
        said = f"Only {run['host']} knows whether it is paused, and its rate limit."
    elif old > _OLD_SECONDS:
        said = f"The app said this {duration(old)} ago, and nothing since."
    elif row.get("control") is None:
        said = "Whether it is paused, and its rate limit, are not known: the app takes no commands now."
    else:
        return []
    return _said(said, width, "yellow")


def _said(text: str, width: int, style: str = "") -> list[Text]:
    return list(Text(shown_line(text), style=style).wrap(out, width))
