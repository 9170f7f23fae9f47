"""What a step of a lesson shows. The command line draws it; nothing here knows about terminals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum


class Mark(Enum):
    """A cell of a grid with a meaning, which the grid's legend says."""

    DONE = "done"
    RUNNING = "running"
    WAITING = "waiting"
    AGAIN = "again"
    FAILED = "failed"
    POINTER = "pointer"
    NOTHING = "nothing"


Cell = Mark | str
"""A mark, or a short text such as the name of an owner."""


@dataclass(frozen=True)
class GridRow:
    label: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Grid:
    """Rows of cells under numbered columns: the offsets of a partition, the partitions of members, slices of time."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[GridRow, ...]
    legend: Mapping[Mark, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FactTable:
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class LessonStep:
    """One step: what is done, the pictures of what Kafka says about it, and what to see in them."""

    title: str
    doing: str
    pictures: tuple[Grid | FactTable, ...]
    see: str


def offsets_row(label: str, end: int, marks: Mapping[int, Mark], *, default: Mark = Mark.WAITING) -> GridRow:
    """A row with one cell for each offset below ``end``."""
    return GridRow(label, tuple(marks.get(offset, default) for offset in range(end)))


def pointer_row(label: str, at: int, *, width: int) -> GridRow:
    """A row that points at one column."""
    return GridRow(label, tuple(Mark.POINTER if column == at else Mark.NOTHING for column in range(width)))


def offset_columns(end: int) -> tuple[str, ...]:
    return tuple(str(offset) for offset in range(end))


def ownership_rows(owned: Mapping[str, Sequence[int]], partitions: int) -> tuple[GridRow, ...]:
    """One row for each member, with a mark for each partition of a topic that it owns."""
    return tuple(
        GridRow(member, tuple(Mark.DONE if number in numbers else Mark.NOTHING for number in range(partitions)))
        for member, numbers in owned.items()
    )
