"""The ``penstock`` command."""

from penstock.cli.entry_point import main

__all__ = ["main"]
