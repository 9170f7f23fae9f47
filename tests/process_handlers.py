"""Handlers for tests of worker processes, which import this module by name as they import a user's module."""

import os
import signal
import time
from pathlib import Path

from penstock import App, Record

app = App("computing")


def name_process(value: str) -> str:
    return f"{value} {os.getpid()}"


def die_on_poison(value: str, record: Record) -> str:
    """A poison record ends its process each time, a ``cold`` one only at its first attempt."""
    if value == "poison" or (value == "cold" and record.attempt == 1):
        os.kill(os.getpid(), signal.SIGKILL)
    return f"{value} {record.attempt}"


def die_in_a_batch(values: list[str]) -> None:
    if "poison" in values:
        os.kill(os.getpid(), signal.SIGKILL)


def write_pid_and_wait(value: str) -> None:
    """Write the process id, then wait forever."""
    Path(value).write_text(str(os.getpid()), encoding="utf-8")
    signal.pause()


def ask_the_app(value: bytes) -> None:
    app.progress()


def hang_on_demand(value: str) -> str:
    """Do nothing for ever if the value says so; otherwise name the process."""
    if value == "hang":
        signal.pause()
    return f"{value} {os.getpid()}"


def is_even(record: Record) -> bool:
    return int(record.value or b"") % 2 == 0


def take_even(value: int) -> str:
    return f"even {value} {os.getpid()}"


def take_rest(value: int) -> str:
    return f"rest {value} {os.getpid()}"


def take_a_second(values: list[int]) -> None:
    time.sleep(1)


def hang_at_nine(values: list[int]) -> None:
    if 9 in values:
        signal.pause()
