"""The page about the command line: each command with its arguments and options, from its own help."""

import re
from collections.abc import Iterator
from typing import Any

import typer.main

from docs_site.reference.docstrings import cell
from penstock.cli.entry_point import command_line

_STYLE = re.compile(r"\[/?(?:bold|dim|italic|cyan|green|yellow|red)?\]")


def commands_page() -> str:
    lines = [
        "# Command line",
        "",
        "Every command of `penstock`, with its options. `penstock COMMAND --help` prints the same. The commands are",
        "explained [where you need them](../operating.md), and so are the [exit codes](errors.md#exit-codes).",
        "",
    ]
    for path, command in commands():
        lines += _command(path, command)
    return "\n".join(lines) + "\n"


def commands() -> list[tuple[str, Any]]:
    """Every command that does something, with its whole name."""
    return list(_below("penstock", typer.main.get_command(command_line())))


def _below(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None or getattr(command, "invoke_without_command", False):
        yield path, command
    for name, each in sorted((inner or {}).items()):
        if not each.hidden:
            yield from _below(f"{path} {name}", each)


def _command(path: str, command: Any) -> Iterator[str]:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    names = "".join(f" {_argument(each)}" for each in arguments)
    yield from (f"## {path}", "", f"`{path}{names} [OPTIONS]`" if options else f"`{path}{names}`", "")
    yield from (_plain(command.help or ""), "")
    if arguments:
        yield from ("| argument | meaning |", "|---|---|")
        yield from (f"| `{_argument(each)}` | {cell(_plain(getattr(each, 'help', '') or ''))} |" for each in arguments)
        yield ""
    if options:
        yield from ("| option | default | meaning |", "|---|---|---|")
        yield from (f"| {_names(each)} | {_default(each)} | {cell(_plain(each.help or ''))} |" for each in options)
        yield ""
    if command.epilog:
        yield from ("```text", *_indented(command.epilog), "```", "")


def _argument(parameter: Any) -> str:
    name = parameter.metavar or str(parameter.name).upper()
    name = f"{name}..." if parameter.nargs == -1 else name
    return name if parameter.required else f"[{name}]"


def _names(option: Any) -> str:
    names = ", ".join(f"`{each}`" for each in (*option.opts, *option.secondary_opts))
    return names if option.is_flag or not option.metavar else f"{names} `{option.metavar}`"


def _default(option: Any) -> str:
    value = option.default
    if callable(value) or value is None or value is False or not value or repr(value).startswith("Sentinel"):
        return ""
    return f"`{getattr(value, 'value', value)}`"


def _plain(text: str) -> str:
    text = _STYLE.sub("", re.sub(r"\\\[", "[", text)).replace("\b", "").strip()
    return text.replace("<", "&lt;")


def _indented(epilog: str) -> list[str]:
    return [line.rstrip() for line in _STYLE.sub("", epilog).replace("\b", "").strip("\n").split("\n")]
