"""Stores that keep progress outside of Kafka: in a database, in a file, or in an object of the user."""

from penstock.app.offset_store import (
    AlreadyFinished,
    ClaimLost,
    OffsetStore,
    Progress,
    SavedProgress,
    TransactionalStore,
)
from penstock.stores.file_store import FileOffsets
from penstock.stores.sql_store import SqlOffsets

__all__ = [
    "AlreadyFinished",
    "ClaimLost",
    "FileOffsets",
    "OffsetStore",
    "Progress",
    "SavedProgress",
    "SqlOffsets",
    "TransactionalStore",
    "open_store",
]


def open_store(offsets: str | OffsetStore, *, connections: int) -> OffsetStore:
    """The store that ``offsets=`` names. ``connections`` is the concurrency of the handler; the store has a limit."""
    if not isinstance(offsets, str):
        return offsets
    if offsets.startswith("file:"):
        return FileOffsets(offsets.removeprefix("file:"))
    return SqlOffsets(offsets, connections=min(connections, SqlOffsets.MOST_CONNECTIONS))
