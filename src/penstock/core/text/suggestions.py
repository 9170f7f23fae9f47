"""Suggestions for an unknown name."""

from collections.abc import Collection
from difflib import get_close_matches


def suggestion(name: str, known: Collection[str], *, otherwise: str = "") -> str:
    """A hint with the most similar known name; if none is similar, ``otherwise``, or a list of all known names."""
    nearest = get_close_matches(name, known, n=1)
    return f"Did you mean {nearest[0]!r}?" if nearest else otherwise or f"There are: {', '.join(sorted(known))}."
