"""What to say about a name that nobody knows."""

from collections.abc import Collection
from difflib import get_close_matches


def suggestion(name: str, known: Collection[str], *, otherwise: str = "") -> str:
    """The known name that looks most like this one; where none does, ``otherwise``, or all of them."""
    nearest = get_close_matches(name, known, n=1)
    return f"Did you mean {nearest[0]!r}?" if nearest else otherwise or f"There are: {', '.join(sorted(known))}."
