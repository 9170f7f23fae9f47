"""The layout of ``--help``: no type for flags, which take no value, and examples that fit the terminal."""

import re
import textwrap
from functools import partial
from typing import Any

_HELP_NAMES = ["-h", "--help"]
# An example: two spaces, the command, and after at least two spaces what it is for.
_EXAMPLE = re.compile(r"^  (?P<command>\S.*?)(?:\s{2,}(?P<purpose>\S.*))?$")
# Words that stay together: an option with its value.
_WORDS = re.compile(r"""(?:'[^']*'|\S)+(?:\s(?!-)(?:'[^']*'|\S)+)*""")
_INDENT = "  "
_DEEPER = "      "
# With less room than this beside the commands, the purposes go below them.
_MIN_PURPOSE = 24


def lay_out_help(command: Any, width: int) -> None:
    """Prepare the help of a command, and of those below it, for a terminal of this width."""
    context = command.context_class(command, help_option_names=_HELP_NAMES)
    for option in (*command.params, command.get_help_option(context)):
        # Typer 0.29 shows `<bool>` otherwise, as if the flag took a value.
        if getattr(option, "is_flag", False) and option.metavar is None:
            option.metavar = ""
    # Typer leaves a margin of one column on both sides.
    command.epilog = command.epilog and examples_within(command.epilog, width - 2)
    for each in getattr(command, "commands", {}).values():
        lay_out_help(each, width)


def examples_within(epilog: str, width: int) -> str:
    """Break the lines that are too long: commands with a backslash between words, purposes in their own column."""
    lines = epilog.splitlines()
    if all(len(line) <= width for line in lines):
        return epilog
    column = max((found.start("purpose") for line in lines if (found := _EXAMPLE.match(line))), default=0)
    return "\n".join(each for line in lines for each in _broken(line, column, width))


def _broken(line: str, column: int, width: int) -> list[str]:
    found = _EXAMPLE.match(line)
    if found is None or (len(line) <= width and not found["purpose"]):
        return [line]
    command, purpose = _command(found["command"], width), found["purpose"] or ""
    fold = partial(textwrap.wrap, purpose, break_long_words=False, break_on_hyphens=False)
    if width - column >= _MIN_PURPOSE and len(command) == 1:
        beside = fold(width - column)
        return [
            f"{command[0]:<{column}}{beside[0]}" if beside else command[0],
            *(" " * column + each for each in beside[1:]),
        ]
    return [*command, *fold(width, initial_indent=_DEEPER, subsequent_indent=_DEEPER)]


def _command(text: str, width: int) -> list[str]:
    lines = [_INDENT]
    for word in _WORDS.findall(text):
        if lines[-1].strip() and len(lines[-1]) + len(word) + len(" \\") > width:
            lines[-1] += "\\"
            lines.append(_DEEPER)
        lines[-1] += f"{word} "
    return [line.rstrip() for line in lines]
