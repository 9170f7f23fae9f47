"""Asks for confirmation before something is changed."""

import sys
from collections.abc import Iterable
from pathlib import Path

import typer

from penstock.cli.console.screen import shown_line
from penstock.errors import ConfigError


def confirm(question: str, *, yes: bool) -> None:
    """Ask the question; abort unless the user agrees. ``--yes`` agrees in advance."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError(
            "This command asks for confirmation, and standard input is not a terminal.", hint="Add --yes to confirm."
        )
    typer.confirm(shown_line(question), abort=True, err=True)


def confirm_replacing(files: Iterable[Path], *, yes: bool) -> None:
    """Ask before a command replaces files. Call this before the command does anything else."""
    there = [str(file) for file in files if file.exists()]
    if there and not yes and not sys.stdin.isatty():
        raise ConfigError(
            f"{', '.join(there)} exists already, and standard input is not a terminal to ask on.",
            hint="Name another file, or add --yes to replace it.",
        )
    if there:
        confirm(f"Replace {', '.join(there)}?", yes=yes)
