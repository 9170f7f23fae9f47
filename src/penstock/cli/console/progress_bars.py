"""Progress bars of long commands: how far, how fast, how much longer.

Without a terminal, steps are printed as plain lines, without bars.
"""

from types import TracebackType
from typing import Self

from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from penstock.cli.console.screen import Screen
from penstock.core.reports import events
from penstock.core.text.foreign_text import printable_line


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed or 0
        match task.fields.get("unit", "records"):
            case "records" if speed:
                return Text(f"{speed:,.0f} records/s", style="cyan")
            case "bytes" if speed:
                return Text(f"{speed / 1e6:,.1f} MB/s", style="cyan")
            case _:  # a rate of brokers or jars is of no use
                return Text("")


class _Counts(ProgressColumn):
    def render(self, task: Task) -> Text:
        total = task.total or 0
        if total <= 1:  # a single thing is there or not
            return Text("")
        if task.fields.get("unit") == "bytes":
            return Text(f"{task.completed / 1e6:,.1f} of {total / 1e6:,.1f} MB")
        dead_letters = task.fields.get("dead_letters", 0)
        return Text(
            f"{task.completed:,.0f} of {total:,.0f}" + (f", {dead_letters:,} dead letters" if dead_letters else "")
        )


class _Bar(BarColumn):
    def render(self, task: Task) -> Text:  # type: ignore[override] # Rich draws a text as well as a bar
        return super().render(task) if (task.total or 0) > 1 else Text("")  # type: ignore[return-value]


class _TimeLeft(TimeRemainingColumn):
    max_refresh = 0.0  # otherwise a step without a total keeps the time of the one before for half a second

    def render(self, task: Task) -> Text:
        return super().render(task) if (task.total or 0) > 1 else Text("")


class _Live:
    """One live line at the bottom of ``console``. Other lines scroll above it."""

    def __init__(self, console: Screen, description: str) -> None:
        self._console = console
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            _Bar(),
            _Counts(table_column=Column(no_wrap=True)),
            _Rate(table_column=Column(no_wrap=True)),
            _TimeLeft(compact=True),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task(description, total=None)
        self._dead_letters = 0
        self._last: dict[str, tuple[int, int]] = {}
        self._left: dict[str, int] = {}
        self._measured: set[str] = set()

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def count(self, event: events.Event) -> None:
        """Advance the bar by an event of an engine."""
        match event:
            case events.Started(handler=handler, lag=lag):
                self._left[handler] = self._left.get(handler, 0) + lag
                self._advance(0, 0)
            case events.BatchFinished(handler=handler, lag=lag) if lag is not None:
                # A measured lag, which includes records written since the start.
                self._left[handler] = lag
                self._measured.add(handler)
            case events.Progressed(handler=handler, read=read, dead_lettered=dead_letters):
                last_read, last_dead_letters = self._last.get(handler, (0, 0))
                self._last[handler] = (read, dead_letters)
                if handler not in self._measured:
                    self._left[handler] = max(0, self._left.get(handler, 0) - (read - last_read))
                self._advance(read - last_read, dead_letters - last_dead_letters)

    def _advance(self, records: int, dead_letters: int) -> None:
        self._dead_letters += dead_letters
        (task,) = self._progress.tasks
        total = task.completed + records + sum(self._left.values())
        self._progress.update(self._task, advance=records, total=total, dead_letters=self._dead_letters)


class Meter(_Live):
    """A listener that draws the records read against the lag, and on Spark names the last finished batch."""

    def __init__(self, console: Screen) -> None:
        super().__init__(console, "records")
        self._at_once: dict[tuple[str, str], int] = {}  # what concurrency="auto" has found, by handler and member

    def __call__(self, event: events.Event) -> None:
        self.count(event)
        if isinstance(event, events.ConcurrencyChanged) and event.member != "spark":
            self._at_once[event.handler, event.member] = event.concurrency
            self._progress.update(self._task, description=f"records, {sum(self._at_once.values())} at once")
        if isinstance(event, events.RateLimited | events.RateEased) and event.member != "spark":
            limited = f"records, limited to {event.rate}" if isinstance(event, events.RateLimited) else "records"
            self._progress.update(self._task, description=printable_line(limited))
        if isinstance(event, events.BatchFinished):
            behind = "" if event.lag is None else f", {event.lag:,} behind"
            self._progress.update(self._task, description=f"batch {event.batch}{behind}")


class Steps(_Live):
    """Prints each step when it begins, with a bar below it while it lasts."""

    def __init__(self, console: Screen, *, quiet: bool = False) -> None:
        super().__init__(Screen(quiet=True) if quiet else console, "")
        self._current = ""

    def step(self, text: str, *, done: int = 0, total: int = 0, unit: str = "records") -> None:
        if text != self._current:
            self._current = text
            self._dead_letters = 0
            self._last.clear()
            self._left.clear()
            self._measured.clear()
            self._console.print(f"• {text}", markup=False, soft_wrap=True)
            description = printable_line(text)
            self._set_total(total)
            self._progress.reset(self._task, description=description, dead_letters=0, unit=unit)
        self._set_total(total)
        self._progress.update(self._task, completed=done)

    def _set_total(self, total: int) -> None:
        """Set here because Rich takes None to mean that the total stays the one of the step before."""
        (task,) = self._progress.tasks
        task.total = total or None

    def event(self, event: events.Event) -> None:
        self.count(event)
