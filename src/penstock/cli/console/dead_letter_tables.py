"""The tables of ``penstock dlq ls``: topics of dead letters, and counts of dead letters."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from penstock.cli.console.screen import err, print_json
from penstock.cli.console.tables import moment, print_table
from penstock.core.text.foreign_text import printable_line
from penstock.ops.dead_letters import Letter, LetterCount

LetterCounts = Mapping[tuple[str, ...], LetterCount]

_PREVIEW = 60


class HeaderCheck:
    """Passes dead letters through and notes whether any of them has the headers of a dead letter."""

    def __init__(self) -> None:
        self.read = 0
        self.any = False

    def __call__(self, letters: Iterable[Letter]) -> Iterator[Letter]:
        for letter in letters:
            self.read += 1
            self.any = self.any or bool(letter.note.style)
            yield letter

    def warn(self, topic: str) -> None:
        if self.read and not self.any:
            err.print(
                f"None of these records has the headers of a dead letter. Is {topic} the right topic? "
                "`penstock dlq ls` lists the topics whose names look like dead-letter topics.",
                style="yellow",
                soft_wrap=True,
            )


def show_topics(topics: Mapping[str, int], *, as_json: bool) -> None:
    if as_json:
        print_json({"topics": [{"topic": name, "max_letters": count} for name, count in topics.items()]})
    elif topics:
        rows = [(name, f"{count:,}") for name, count in topics.items()]
        print_table(("TOPIC", "MAX-LETTERS"), rows, right=("MAX-LETTERS",))
    else:
        say_no_topics()


def say_no_topics() -> None:
    err.print("No topic has a name like that of a dead-letter topic.")


def show_counts(found: Mapping[str, LetterCounts], *, by: str, named: bool, as_json: bool) -> None:
    """Show the counts of each topic. With ``named`` the user named the one topic, so its column is left out."""
    names = ("source", "group", "reason") if by == "reason" else (by,)
    if as_json:
        shown = [
            {"topic": topic, "piles": [_count_json(names, common, pile) for common, pile in piles.items()]}
            for topic, piles in found.items()
        ]
        print_json(shown[0] if named else {"topics": shown})
        return
    rows = [
        (
            *(() if named else (topic,)),
            *(moment(float(common[0])) if by == "hour" else each for each in common),
            f"{pile.count:,}",
            moment(pile.first),
            moment(pile.last),
            printable_line(pile.message, limit=_PREVIEW),
        )
        for topic, piles in found.items()
        for common, pile in piles.items()
    ]
    columns = (*(() if named else ("TOPIC",)), *(name.upper() for name in names), "LETTERS", "FIRST", "LAST", "MESSAGE")
    print_table(columns, rows, right=("LETTERS",)) if rows else err.print("No dead letters.")


def _count_json(names: tuple[str, ...], common: tuple[str, ...], pile: LetterCount) -> dict[str, Any]:
    return {
        **dict(zip(names, common, strict=True)),
        "count": pile.count,
        "first": pile.first,
        "last": pile.last,
        "message": pile.message,
    }
