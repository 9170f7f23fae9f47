"""The one question before something is changed."""

import sys

import typer

from penstock.core.foreign_text import printable_line
from penstock.core.settings import redacted
from penstock.errors import ConfigError


def confirm(question: str, *, yes: bool) -> None:
    """Go on only if somebody agrees, or agreed beforehand with --yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError("Nobody is there to confirm it.", hint="Add --yes to go on without a question.")
    typer.confirm(printable_line(redacted(question)), abort=True, err=True)
