"""The terminal: results go to standard output, everything else to standard error."""

from rich.console import Console

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)
