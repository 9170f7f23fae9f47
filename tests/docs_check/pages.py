"""Reads the files to save and the commands to type from a page, in their order.

- A ``console`` block has commands after ``$ ``. The lines up to the next command are its output.
- A block whose first line is a comment with a file's name (``# shop.py``) is that file, and so is a block below
  ``<!-- saved as NAME -->``, for files that have no comments.
- ``<!-- not run: why -->`` right above a block of commands or code: readers see the block, but it is not run here.
- ``<!-- file NAME`` … ``-->`` and ``<!-- before`` … ``-->`` are files and commands that come first, and
  that readers do not see.
- ``<!-- given`` … ``-->`` is Python that the next block of code takes for granted, such as a class or a client, and
  that readers do not see.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

_FENCE = re.compile(r"^\s*```(\w*)\s*$")
_FILE_NAME = re.compile(r"^# ([\w./-]+\.(?:py|toml|jsonl|avsc))$")
_NOT_RUN = re.compile(r"^\s*<!-- not run: (.+) -->$")
_SAVED = re.compile(r"^\s*<!-- saved as (\S+) -->$")
# The last line of a decorator: of one line, or of several.
_DECORATOR_END = re.compile(r"^(@.*)?\)\s*(#.*)?$")
_DECLARATION = re.compile(r"^(async def|def|class) ", re.MULTILINE)
_HIDDEN = re.compile(r"^<!-- (?:file (\S+)|before|(given))$")


@dataclass(frozen=True)
class File:
    """A file to save before the next command."""

    name: str
    text: str


@dataclass(frozen=True)
class Command:
    line: int
    text: str
    prints: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fragment:
    """A piece of Python that belongs to no file. ``docs_check.fragments`` executes it."""

    line: int
    text: str

    @property
    def lines(self) -> list[tuple[int, str]]:
        """Its lines with their numbers on the page, and with a function below each decorator that is shown alone.

        Such decorators are examples: each is for an app of its own, which the name ``another_app`` has to make.
        """
        found, texts, is_decorator = list[tuple[int, str]](), self.text.splitlines(), False
        for number, (text, below) in enumerate(zip(texts, [*texts[1:], ""], strict=True)):
            found.append((self.line + number, text))
            is_decorator |= text.startswith("@")
            if is_decorator and _DECORATOR_END.match(text):
                is_decorator = False
                if not _DECLARATION.match(below) and not (below.startswith("@") and _DECLARATION.search(self.text)):
                    found += [
                        (self.line + number, "def example(value): ..."),
                        (self.line + number, "app = another_app()"),
                    ]
        return found

    @property
    def whole(self) -> str:
        """The text of ``lines``."""
        return "".join(f"{text}\n" for _, text in self.lines)


@dataclass(frozen=True)
class Given:
    """Python that the next fragment takes for granted, and that readers do not see."""

    line: int
    text: str


@dataclass(frozen=True)
class NotRun:
    line: int
    reason: str


Step = File | Command | Fragment | Given | NotRun


def steps_of(page: Path) -> list[Step]:
    return list(_steps(page.read_text("utf-8").splitlines()))


def _steps(lines: list[str]) -> Iterator[Step]:
    number = 0
    while number < len(lines):
        hidden, fence = _HIDDEN.match(lines[number]), _FENCE.match(lines[number])
        if hidden or fence:
            end = _end(lines, number + 1, "-->" if hidden else "```")
            body, at = dedent("\n".join(lines[number + 1 : end])).split("\n"), number + 2
            if hidden and hidden[2]:
                yield Given(at, _text(body))
            elif hidden:
                yield from [File(hidden[1], _text(body))] if hidden[1] else _commands(body, at)
            elif fence:
                yield from _of_block(fence[1], body, at, lines[number - 1] if number else "")
            number = end
        number += 1


def _end(lines: list[str], start: int, mark: str) -> int:
    return next(number for number in range(start, len(lines)) if lines[number].strip() == mark)


def _of_block(language: str, body: list[str], line: int, above: str) -> Iterator[Step]:
    if reason := _NOT_RUN.match(above):
        yield NotRun(line, reason[1])
        if language == "python":
            yield Fragment(line, _text(body))
        return
    if saved := _SAVED.match(above):
        yield File(saved[1], _text(body))
        return
    if language == "console":
        yield from _commands(body, line)
        return
    if any(line.startswith("$ ") for line in body):
        raise ValueError(f"line {line}: a block with commands is to begin with ```console")
    name = _FILE_NAME.match(body[0]) if body else None
    if name:
        yield File(name[1], _text(body))
    elif language == "python":
        yield Fragment(line, _text(body))


def _commands(body: list[str], line: int) -> Iterator[Command]:
    at, command, prints = line, "", list[str]()
    for number, text in enumerate(body, start=line):
        if text.startswith("$ "):
            if command:
                yield Command(at, command, tuple(prints))
            at, command, prints = number, text[2:], []
        elif command.endswith("\\"):
            command += "\n" + text
        elif text.strip():
            prints.append(text)
    if command:
        yield Command(at, command, tuple(prints))


def _text(body: list[str]) -> str:
    return "\n".join(body) + "\n"
