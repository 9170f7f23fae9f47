"""Places to keep progress outside of Kafka: a database, a file, or an object of the user's own."""

from penstock.app.offset_store import AlreadyFinished, ClaimLost, Kept, OffsetStore, Progress, TransactionalStore
from penstock.stores.file_store import FileOffsets
from penstock.stores.sql_store import SqlOffsets

__all__ = [
    "AlreadyFinished",
    "ClaimLost",
    "FileOffsets",
    "Kept",
    "OffsetStore",
    "Progress",
    "SqlOffsets",
    "TransactionalStore",
    "open_store",
]


def open_store(offsets: str | OffsetStore, *, connections: int) -> OffsetStore:
    """The store that ``offsets=`` names; as many ``connections`` as handlers that may be at work, within reason."""
    if not isinstance(offsets, str):
        return offsets
    if offsets.startswith("file:"):
        return FileOffsets(offsets.removeprefix("file:"))
    return SqlOffsets(offsets, connections=min(connections, SqlOffsets.MOST_CONNECTIONS))
