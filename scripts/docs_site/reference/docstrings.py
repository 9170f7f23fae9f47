"""Docstrings as Markdown: their code, their lists of arguments, their indentation."""

import inspect
import re
from typing import Any

_HEADING = re.compile(r"^(Args|Arguments|Attributes|Raises|Returns|Yields|Example|Examples):$")
_TITLES = {"Args": "Arguments"}
_ITEM = re.compile(r"^ {4}(\*{0,2}[\w, *]+): (.*)$")


def markdown_of(item: Any, *, up_to: str = "") -> str:
    """The docstring as Markdown; ``up_to`` is a line where it ends."""
    text = inspect.getdoc(item) or ""
    if up_to and up_to in text:
        text = text[: text.index(up_to)].rstrip()
    return "\n".join(_lines(text.replace("``", "`").split("\n")))


def _lines(lines: list[str]) -> list[str]:
    made: list[str] = []
    in_list = False
    for line in lines:
        heading, item = _HEADING.match(line), _ITEM.match(line)
        if heading:
            in_list = True
            made += [f"**{_TITLES.get(heading[1], heading[1])}**", ""]
        elif in_list and item:
            made.append(f"- `{item[1]}`: {item[2]}")
        elif in_list and line.startswith("    "):
            made.append(f"  {line.strip()}")
        else:
            in_list = in_list and not line
            made.append(line)
    return made


def summary(item: Any) -> str:
    """The first sentence or paragraph, on one line."""
    paragraph = (inspect.getdoc(item) or "").split("\n\n")[0].replace("``", "`")
    return " ".join(paragraph.split())


def cell(text: str) -> str:
    """The text for a cell of a table."""
    return " ".join(text.split()).replace("|", r"\|")
