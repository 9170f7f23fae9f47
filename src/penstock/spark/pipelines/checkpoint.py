"""Reads Spark's checkpoint of one query: which batches are planned, which are finished, and their offsets.

Spark writes ``offsets/N`` with the end offsets of batch N before it runs the batch, and ``commits/N`` when the batch is
finished. Each file appears by one rename, so it is complete, unless the disk itself failed.
"""

import hashlib
import re
import shutil
from pathlib import Path

from penstock.errors import ConfigError
from penstock.paths import checkpoint_root
from penstock.spark.driver.declared import Declared
from penstock.spark.pipelines.resume_offsets import Offsets, from_json

_VERSION_LINE = "v1"
_ODD_LETTERS = re.compile(r"[^A-Za-z0-9_-]")
_TAG_LENGTH = 8


class Checkpoint:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def finished(self) -> Offsets:
        """Return the end of the last finished batch; empty if there is no readable one."""
        done = self._batches("commits")
        return self.offsets_of(max(done)) if done else {}

    def is_finished(self, batch: int) -> bool:
        return (self.folder / "commits" / str(batch)).exists()

    def offsets_of(self, batch: int) -> Offsets:
        """Return the end of this batch, finished or not; empty if it cannot be read."""
        try:
            version, _, offsets = (self.folder / "offsets" / str(batch)).read_text("utf-8").split("\n")
            return from_json(offsets) if version == _VERSION_LINE else {}
        except (OSError, ValueError):
            return {}

    def is_readable(self) -> bool:
        """Whether Spark can resume from here: it reads the last file of each kind, and fails on a damaged one."""
        planned, done = self._batches("offsets"), self._batches("commits")
        return bool(
            planned
            and done
            and self.offsets_of(max(planned))
            and self.offsets_of(max(done))
            and self._starts_with_version(self.folder / "commits" / str(max(done)))
        )

    def set_aside(self) -> None:
        """Rename the folder, so that Spark makes a new one. Keeps one renamed folder, to find out what happened."""
        if self.folder.exists():
            aside = self.folder.with_name(f"{self.folder.name}.aside")
            shutil.rmtree(aside, ignore_errors=True)
            self.folder.rename(aside)

    def _batches(self, kind: str) -> list[int]:
        return [int(path.name) for path in (self.folder / kind).glob("*") if path.name.isdecimal()]

    def _starts_with_version(self, path: Path) -> bool:
        try:
            return path.read_text("utf-8").startswith(_VERSION_LINE)
        except (OSError, ValueError):
            return False


def checkpoint_of(handler: Declared, root: Path) -> Checkpoint:
    return Checkpoint(root / _folder_name(handler.group) / _folder_name(handler.name))


def checkpoints_of(group: str, root: Path) -> list[Checkpoint]:
    """Return the checkpoints of all handlers of a group. ``root`` is ``default_root`` or the folder of --checkpoint.

    A tool that sets a group's offsets has to set its checkpoints aside as well, while the group does not run: a start
    resumes at the offset of the checkpoint or of the group, whichever is higher.
    """
    # The folder of a handler has no dot in its name; a folder that was set aside has one.
    folders = sorted(path for path in (root / _folder_name(group)).glob("*") if path.is_dir() and "." not in path.name)
    return [Checkpoint(folder) for folder in folders]


def default_root(cluster_id: str) -> Path:
    """Return the default folder of the checkpoints for a cluster."""
    return checkpoint_root() / cluster_id


def checked_root(root: Path | str) -> Path:
    """Check the folder of --checkpoint. Only the driver uses it, so a local folder is enough for a cluster."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", str(root)):
        raise ConfigError(
            f"checkpoint={str(root)!r} is not a folder of this machine.",
            hint="Name a local folder, or leave it out. On another machine the app resumes from the group's offsets.",
        )
    return Path(root).expanduser().resolve()


def _folder_name(name: str) -> str:
    """Return the name if it has only plain characters; otherwise a plain form of it with a hash."""
    plain = _ODD_LETTERS.sub("_", name)
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:_TAG_LENGTH]}"
