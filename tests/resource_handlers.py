"""Resources and handlers for tests of worker processes, which import them by name as they import a user's module."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock import Record

FOLDER = "PENSTOCK_TEST_FOLDER"


def _note(line: str) -> None:
    with (Path(os.environ[FOLDER]) / "notes").open("a", encoding="utf-8") as file:
        file.write(f"{line} {os.getpid()}\n")


def db() -> Iterator[str]:
    _note("open db")
    yield f"db of {os.getpid()}"
    _note("close db")


def session(db: str) -> Iterator[str]:
    _note("open session")
    yield f"session with {db}"
    _note("close session")


def broken() -> str:
    raise ValueError("no connection")


def endless() -> Iterator[str]:
    yield "endless"
    while True:
        pass


def timed(record: Record, call: Any) -> Any:
    return f"timed {call()}"


def name_session(value: str, session: str) -> str:
    return f"{value} {session} in {os.getpid()}"


def take_broken(value: str, broken: str) -> None: ...


def take_endless(value: str, endless: str) -> str:
    return value
