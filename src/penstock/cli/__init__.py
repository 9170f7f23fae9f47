"""The ``penstock`` command."""

from penstock.cli.entry import main

__all__ = ["main"]
