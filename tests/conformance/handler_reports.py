"""What handlers report about themselves, from any process."""

from ast import literal_eval
from pathlib import Path
from typing import Any


class Notes:
    """A file to which all processes append a line for each note. Notes are plain values: numbers, bytes, tuples."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.touch()

    def add(self, note: Any) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{note!r}\n")  # one system call, so that notes of several processes do not mix

    def read(self) -> list[Any]:
        return [literal_eval(line) for line in self._path.read_text("utf-8").splitlines()]

    def __len__(self) -> int:
        return len(self.read())
