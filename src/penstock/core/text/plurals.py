"""Numbers in sentences."""


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """``1 record``, ``2 records``, ``1,000 records``; ``plural`` is for nouns that do not just take an "s"."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def at_most(number: int, noun: str) -> str:
    """A number of records, counted by offsets: ``up to 5 records``, because transaction markers also have offsets."""
    return f"up to {counted(number, noun)}" if number else counted(number, noun)
