"""What a running app can be asked, while an engine answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from penstock.core.record import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProgress:
    """How far one owned partition is."""

    handler: str
    group: str
    topic: str
    partition: int
    position: int | None
    """The offset to be fetched next; None until the first answer of the broker, where the log's start was asked for."""
    committed: int | None
    """What the group has committed; None before the first time."""
    end: int
    """The offset that the next record to be written will get."""
    lag: int | None
    """Offsets between what is committed (without a commit: the position) and the end."""
    in_flight: int
    """Records that were fetched and are not finished."""


class Control(Protocol):
    """An engine's side of ``App.progress`` and ``App.commit``; from any thread."""

    def progress(self) -> list[PartitionProgress]: ...
    def commit(self, offsets: Mapping[TopicPartition, int]) -> None: ...
