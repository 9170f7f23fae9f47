"""At most once: fetched records wait here until the broker accepts a commit past them; then they go to lanes."""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any


class CommitGate:
    """The waiting records of one epoch. Only the dispatcher thread uses it.

    ``shut`` closes the gate when the epoch ends: from then on, it keeps only records that a commit in flight may still
    let through. Records that were let through are handled in this epoch or never; all others are delivered to the
    next owner of the partition.
    """

    __slots__ = ("_commit_in_flight", "_offset_of", "_waiting", "is_shut")

    def __init__(self, offset_of: Callable[[Any], int]) -> None:
        self._offset_of = offset_of
        self._waiting: deque[Any] = deque()
        self._commit_in_flight: int | None = None
        self.is_shut = False

    def __bool__(self) -> bool:
        """Whether any record waits."""
        return bool(self._waiting)

    def hold(self, records: Sequence[Any]) -> None:
        self._waiting.extend(records)

    def ask(self, offset: int) -> None:
        """A commit of this offset was sent to the broker."""
        self._commit_in_flight = offset

    def accept(self, offset: int) -> list[Any]:
        """The broker accepted the commit: returns the records below it, which no other member will get any more."""
        self._commit_in_flight = None
        released = list(takewhile(lambda record: self._offset_of(record) < offset, self._waiting))
        for _ in released:
            self._waiting.popleft()
        if self.is_shut:
            self._waiting.clear()
        return released

    def refuse(self) -> None:
        """The commit failed, or its result is unknown."""
        self._commit_in_flight = None
        if self.is_shut:
            self._waiting.clear()

    def shut(self) -> None:
        """Close the gate: drop every record that a commit in flight does not cover."""
        self.is_shut = True
        committing = -1 if self._commit_in_flight is None else self._commit_in_flight
        while self._waiting and self._offset_of(self._waiting[-1]) >= committing:
            self._waiting.pop()
