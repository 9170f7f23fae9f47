"""At most once: records wait here until the commit that passes them by is accepted, and only then go to lanes."""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any


class CommitGate:
    """Of one epoch. Once ``shut`` it takes nothing in, and keeps only what a commit under way may let through.

    What was let through is handled by this epoch or by nobody; what was not is still the group's to deliver.
    """

    __slots__ = ("_asked", "_offset_of", "_waiting", "is_shut")

    def __init__(self, offset_of: Callable[[Any], int]) -> None:
        self._offset_of = offset_of
        self._waiting: deque[Any] = deque()
        self._asked: int | None = None
        self.is_shut = False

    def __bool__(self) -> bool:
        """Whether records wait here."""
        return bool(self._waiting)

    def hold(self, records: Sequence[Any]) -> None:
        self._waiting.extend(records)

    def ask(self, offset: int) -> None:
        """A commit of this offset is on its way."""
        self._asked = offset

    def accept(self, offset: int) -> list[Any]:
        """It was accepted: what lies below is nobody else's any more."""
        self._asked = None
        through = list(takewhile(lambda record: self._offset_of(record) < offset, self._waiting))
        for _ in through:
            self._waiting.popleft()
        if self.is_shut:
            self._waiting.clear()
        return through

    def refuse(self) -> None:
        """It was not accepted, or nobody knows."""
        self._asked = None
        if self.is_shut:
            self._waiting.clear()

    def shut(self) -> None:
        self.is_shut = True
        asked = -1 if self._asked is None else self._asked
        while self._waiting and self._offset_of(self._waiting[-1]) >= asked:
            self._waiting.pop()
