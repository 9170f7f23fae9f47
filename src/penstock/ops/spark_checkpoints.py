"""The Spark checkpoints of a group's pipelines on this machine, from which Spark would continue."""

from pathlib import Path
from typing import Protocol

from penstock.errors import SetupError
from penstock.paths import checkpoint_root


class SparkCheckpoint(Protocol):
    folder: Path

    def set_aside(self) -> None: ...


def spark_checkpoints(group: str, *, cluster_id: str, root: str | None = None) -> list[SparkCheckpoint]:
    """Return the checkpoints of a group. ``root`` is the folder of ``--checkpoint``, if it was used."""
    try:
        # Imported here because the import is slow and needs Spark.
        from penstock.spark.pipelines.checkpoint import checked_root, checkpoints_of  # noqa: PLC0415
    except SetupError:
        return []
    folder = checked_root(root) if root is not None else checkpoint_root() / cluster_id
    return list(checkpoints_of(group, folder))
