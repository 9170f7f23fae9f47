"""The ``penstock`` command."""

import gc

# Imports create objects that stay. Looking for garbage among them takes a sixth of the time that a command needs to
# start.
gc.disable()
try:
    from penstock.cli.entry_point import main
finally:
    gc.enable()

__all__ = ["main"]
