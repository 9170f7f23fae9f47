"""How many records a task, a batch or a run has read, written, dead-lettered and skipped."""

from dataclasses import dataclass


@dataclass
class Counts:
    read: int = 0
    written: int = 0
    dead_lettered: int = 0
    skipped: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.read + other.read,
            self.written + other.written,
            self.dead_lettered + other.dead_lettered,
            self.skipped + other.skipped,
        )

    def __sub__(self, other: "Counts") -> "Counts":
        return Counts(
            self.read - other.read,
            self.written - other.written,
            self.dead_lettered - other.dead_lettered,
            self.skipped - other.skipped,
        )
