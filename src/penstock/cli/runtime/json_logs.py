"""``--log json``: every line on standard error is one JSON object, for log collectors.

Each has ``ts``, ``level``, ``event`` and ``message``, and the other fields of the event. Log messages of the app are
events ``log``, with the name of their ``logger``.
"""

import json
import logging
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from itertools import pairwise
from typing import Any, TextIO

from penstock.cli.console.screen import Screen
from penstock.cli.runtime.event_listeners import TerminalListener
from penstock.core.reports import event_json, events
from penstock.core.settings import redacted, redacted_values
from penstock.core.text.foreign_text import printable_json

# Events that come many times a second, or that only metrics and --events need.
_LEFT_OUT = (events.Progressed, events.RouteProgressed, events.Committed, events.Lagging, events.Paused, events.Resumed)
_LEVELS = {"dim": "info", "yellow": "warning"}


class LogKind(StrEnum):
    text = "text"
    json = "json"


def wants_json(arguments: Sequence[str]) -> bool:
    """Return whether the arguments have ``--log json``. Used for errors before and after the command parses them."""
    return "--log=json" in arguments or ("--log", "json") in pairwise(arguments)


class JsonLog(TerminalListener):
    """A listener that writes events as JSON. The messages are those of the terminal, but none is left out."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(Screen(quiet=True))
        self._stream = stream
        self._message: tuple[str, str] | None = None

    def __call__(self, event: events.Event) -> None:
        if event.per_record or isinstance(event, _LEFT_OUT):
            return
        self._message = None
        super().__call__(event)
        name = event_json.name(event)
        message, level = self._message or (name.replace("_", " "), "info")
        if isinstance(event, events.Error) and event.fatal:
            message, level = event.reason, "error"
        fields = event_json.fields(event, 0.0)
        self.write(level, name, message, {key: fields[key] for key in fields if key not in ("event", "ts")})

    def write(self, level: str, event: str, message: str, fields: Mapping[str, Any] | None = None) -> None:
        line = {"ts": _timestamp(time.time()), "level": level, "event": event, "message": message, **(fields or {})}
        # One write per line, so that lines of several threads do not mix. Values that JSON lacks become text.
        self._stream.write(
            printable_json(
                json.dumps(redacted_values(line), ensure_ascii=False, default=lambda other: redacted(str(other)))
            )
            + "\n"
        )
        self._stream.flush()

    def say(self, line: str) -> None:
        self.write("info", "notice", line)

    def caution(self, line: str) -> None:
        self.write("warning", "notice", line)

    def _show_traceback(self, event: Any) -> None:
        """Print nothing: each line has the traceback as a field."""

    def _sample(self, _count: int, line: str, _what: str) -> None:
        self._say(line, style="yellow")

    def _say(self, line: str, style: str = "dim") -> None:
        self._message = (line, _LEVELS[style])


class _Handler(logging.Handler):
    def __init__(self, log: JsonLog) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        try:
            fields = {"logger": record.name, "thread": record.threadName}
            if record.exc_info:
                fields["exception"] = "".join(traceback.format_exception(*record.exc_info))
            self._log.write(record.levelname.lower(), "log", record.getMessage(), fields)
        except Exception:  # noqa: BLE001 - as in every logging.Handler: a bad log call must not raise
            self.handleError(record)


@contextmanager
def logging_as_json(log: JsonLog) -> Iterator[None]:
    """Redirect the root logger and Python's warnings to this log for the block."""
    root = logging.getLogger()
    before, root.handlers = root.handlers, [_Handler(log)]
    logging.captureWarnings(capture=True)
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        root.handlers = before


def log_error(problem: str, hint: str, *, kind: str, traceback: str = "") -> None:
    """Write the last line of a command that failed."""
    fields = {"type": kind, "hint": hint, "traceback": traceback} if traceback else {"type": kind, "hint": hint}
    JsonLog(sys.stderr).write("error", "failed", problem, fields)


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
