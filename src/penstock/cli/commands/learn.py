"""``penstock learn``."""

import os
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import count
from typing import Annotated, Any

import typer

from penstock.cli.console.lesson_pictures import show_heading, show_step
from penstock.cli.console.progress_bars import Steps
from penstock.cli.console.screen import err, out, print_json
from penstock.cli.console.shared_options import Brokers, Json
from penstock.cli.console.tables import print_table
from penstock.errors import ConfigError, SetupError
from penstock.kafka import Cluster
from penstock.learn.course import LESSONS, LeftOut, Lesson, classroom, find_lesson, next_lesson, possible, run_lesson
from penstock.learn.picture import LessonStep

_EXAMPLES = """
[bold]Examples[/]

  penstock learn                            list the lessons
  penstock learn 3                          the lesson about assignors, on the embedded Kafka
  penstock learn poison
  penstock learn --all --json | jq .lessons
"""
_MOST_KEYS = 64
_END_OF_INPUT = "\x04"  # Ctrl+D


def register(app: typer.Typer) -> None:
    app.command("learn", epilog=_EXAMPLES)(learn)


def learn(
    lesson: Annotated[
        str | None, typer.Argument(metavar="LESSON", help="The number or name of a lesson.", show_default=False)
    ] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Run all lessons, one after the other.")] = False,
    brokers: Brokers = None,
    as_json: Json = False,
) -> None:
    """Learn in nine short lessons how Kafka delivers records, with pictures of what a real Kafka says at that moment.

    Uses the embedded Kafka, and starts one for the lessons if none is running. Topics and groups of a lesson are
    deleted at its end. In a terminal, a lesson waits after each step. With `--json` it prints facts, not pictures.
    """
    if every and lesson is not None:
        raise ConfigError(f"Both --all and lesson {lesson!r} are given.", hint="Leave one of them out.")
    if lesson is None and not every:
        _list(as_json=as_json)
        return
    chosen = [*LESSONS] if lesson is None else [find_lesson(lesson)]
    waits = not as_json and sys.stdin.isatty() and out.is_terminal
    with Steps(err, quiet=as_json) as steps:
        chosen, left_out = possible(chosen, steps.step)
    if not chosen:
        raise SetupError(left_out[0].problem, hint=left_out[0].hint)
    done: list[dict[str, Any]] = []
    with _classroom(brokers, quiet=as_json) as cluster:
        for each in _and_the_next(chosen, waits=waits) if waits and not every else chosen:
            facts = run_lesson(each, cluster, (lambda _step: None) if as_json else _Teacher(each, waits=waits).show)
            done.append({"number": each.number, "name": each.name, "title": each.title, "facts": facts})
        where = cluster.brokers
    if as_json:
        print_json({"brokers": where, "lessons": done, "left_out": [_reason(each) for each in left_out]})
    else:
        _say_what_is_next(chosen, left_out)


def _list(*, as_json: bool) -> None:
    if as_json:
        print_json({"lessons": [asdict(each) for each in LESSONS]})
        return
    print_table(("", "NAME", "LESSON"), [(each.number, each.name, each.title) for each in LESSONS])
    out.print()
    out.print("Start with `penstock learn 1`. Each lesson takes about a minute.")


@contextmanager
def _classroom(brokers: str | None, *, quiet: bool) -> Iterator[Cluster]:
    """Name the Kafka before the lessons, and say so if it was started for them."""
    started: list[str] = []

    def step(text: str, **_amounts: object) -> None:
        if not quiet:
            err.print(f"• {text}" if started else "• No embedded Kafka is running: starting one for these lessons")
        started.append(text)

    with classroom(brokers, step) as cluster:
        if not quiet:
            ends = ", which ends with the lessons" if started else ""
            err.print(f"• Using Kafka at {cluster.brokers}{ends}", soft_wrap=True)
        yield cluster


class _Teacher:
    """Shows the steps of one lesson, and waits after each if there is a terminal."""

    def __init__(self, lesson: Lesson, *, waits: bool) -> None:
        self._numbers = count(1)
        self._waits = waits
        show_heading(lesson)

    def show(self, step: LessonStep) -> None:
        show_step(step, next(self._numbers))
        if self._waits:
            wait_for_enter("Enter goes on, q quits.")


def wait_for_enter(text: str) -> None:
    """Wait for a key: Enter or space returns, q ends the command."""
    out.print()
    with _single_keys() as terminal:
        out.print(text, style="dim")
        while True:
            keys = os.read(terminal, _MOST_KEYS).decode(errors="replace")
            if not keys or set(keys) & {"q", "Q", _END_OF_INPUT}:
                raise typer.Exit
            if set(keys) & {"\r", "\n", " "}:
                return


@contextmanager
def _single_keys() -> Iterator[int]:
    """Let the terminal deliver each key at once, and keep those that were pressed before. Ctrl+C still interrupts."""
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal, termios.TCSADRAIN)
        yield terminal
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _and_the_next(chosen: Sequence[Lesson], *, waits: bool) -> Iterator[Lesson]:
    """The chosen lesson, and as many of those behind it as the user asks for."""
    yield from chosen
    following = next_lesson(chosen[-1])
    while waits and following is not None:
        wait_for_enter(f"Enter starts lesson {following.number} ({following.title}), q quits.")
        yield following
        following = next_lesson(following)


def _reason(each: LeftOut) -> dict[str, Any]:
    return {"number": each.lesson.number, "name": each.lesson.name, "problem": each.problem, "hint": each.hint}


def _say_what_is_next(chosen: Sequence[Lesson], left_out: Sequence[LeftOut]) -> None:
    out.print()
    for each in left_out:
        out.print(f"Lesson {each.lesson.number} was left out. {each.problem} {each.hint}", soft_wrap=True)
    following = next_lesson(chosen[-1])
    if following is not None and not left_out:
        out.print(f"Next: `penstock learn {following.number}`: {following.title}")
