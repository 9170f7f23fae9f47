"""What the Spark engine remembers of a group on this machine. Spark goes on from there, whatever the group says."""

from pathlib import Path
from typing import Protocol

from penstock.errors import SetupError
from penstock.paths import checkpoint_root


class Checkpoint(Protocol):
    folder: Path

    def set_aside(self) -> None: ...


def spark_checkpoints(group: str, *, cluster_id: str, root: str | None = None) -> list[Checkpoint]:
    """``root`` is what ``penstock run --checkpoint`` was given, if it was."""
    try:
        # Imported here because it takes a while, and is there only where Spark is.
        from penstock.spark.checkpoint import checked_root, checkpoints_of  # noqa: PLC0415
    except SetupError:
        return []
    folder = checked_root(root) if root is not None else checkpoint_root() / cluster_id
    return list(checkpoints_of(group, folder))
