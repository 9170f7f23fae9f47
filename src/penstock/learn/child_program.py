"""Runs ``killed_program`` in a process of its own, and kills it."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.errors import ServerError
from penstock.learn.killed_program import KilledTask
from penstock.learn.sandbox import Sandbox


def run_and_kill(
    sandbox: Sandbox, task: KilledTask, *, handles: int, until: Callable[[], bool], what: str
) -> list[int]:
    """Run the program until it has handled so many records and the condition holds; kill it as ``kill -9`` does.

    Returns the offsets that it has handled.
    """
    with _program(task) as program:
        handled = [_next_offset(program) for _ in range(handles)]

        def holds() -> bool:
            _require_alive(program)
            return until()

        sandbox.wait_until(holds, what)
        return handled


@contextmanager
def _program(task: KilledTask) -> "Iterator[subprocess.Popen[str]]":
    program = subprocess.Popen(
        [sys.executable, "-m", "penstock.learn.killed_program", task.as_text()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield program
    finally:
        program.kill()
        program.communicate()


def _next_offset(program: "subprocess.Popen[str]") -> int:
    line = program.stdout.readline() if program.stdout is not None else ""
    if not line:
        _require_alive(program, ended=True)
    return int(line)


def _require_alive(program: "subprocess.Popen[str]", *, ended: bool = False) -> None:
    if ended or program.poll() is not None:
        raise ServerError(
            "The program that this lesson starts and kills has ended before.",
            hint="Check that the brokers are well, and start the lesson again.",
        )
