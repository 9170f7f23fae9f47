"""Spark's checkpoint of one handler: where it is, and what it says is finished.

Spark writes ``offsets/N`` with the end of batch N before it runs the batch, and ``commits/N`` when the batch is done.
Each appears by one rename, so a file that is there is whole, unless the disk itself was cut off.
"""

import hashlib
import re
import shutil
from pathlib import Path

from penstock.errors import ConfigError
from penstock.paths import checkpoint_root
from penstock.spark.declared import Declared
from penstock.spark.offsets import Offsets, from_json

_VERSION_LINE = "v1"
_ODD_LETTERS = re.compile(r"[^A-Za-z0-9_-]")
_TAG_LENGTH = 8


class Checkpoint:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def finished(self) -> Offsets:
        """The end of the last finished batch; empty where there is none that can be read."""
        done = self._batches("commits")
        return self.offsets_of(max(done)) if done else {}

    def is_finished(self, batch: int) -> bool:
        return (self.folder / "commits" / str(batch)).exists()

    def offsets_of(self, batch: int) -> Offsets:
        """The end of this batch, whether it is finished or not; empty where it cannot be read."""
        try:
            version, _, offsets = (self.folder / "offsets" / str(batch)).read_text("utf-8").split("\n")
            return from_json(offsets) if version == _VERSION_LINE else {}
        except (OSError, ValueError):
            return {}

    def is_readable(self) -> bool:
        """Whether Spark can go on from here: it reads the last file of each kind, and fails on a damaged one."""
        planned, done = self._batches("offsets"), self._batches("commits")
        return bool(
            planned
            and done
            and self.offsets_of(max(planned))
            and self.offsets_of(max(done))
            and self._starts_with_version(self.folder / "commits" / str(max(done)))
        )

    def set_aside(self) -> None:
        """Make room for a new one; the last one set aside is kept, for whoever wants to know what happened."""
        if self.folder.exists():
            aside = self.folder.with_name(f"{self.folder.name}.aside")
            shutil.rmtree(aside, ignore_errors=True)
            self.folder.rename(aside)

    def forget_unfinished(self) -> None:
        """Let Spark plan anew what it planned and did not finish: a batch is else repeated exactly as it was planned.

        Only for sinks that take records again in other batches than before.
        """
        done = max(self._batches("commits"), default=-1)
        for batch in self._batches("offsets"):
            if batch > done:
                (self.folder / "offsets" / str(batch)).unlink(missing_ok=True)
                (self.folder / "offsets" / f".{batch}.crc").unlink(missing_ok=True)

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
    """What Spark remembers for the handlers of a group under this root, be it ``default_root`` or of --checkpoint.

    Where a group's offsets are set by hand, its checkpoints have to be set aside with them, while no run of it is
    alive: a start goes on where the checkpoint or the group stands, whichever is further.
    """
    # No handler's folder has a dot in its name.
    folders = sorted(path for path in (root / _folder_name(group)).glob("*") if path.is_dir() and "." not in path.name)
    return [Checkpoint(folder) for folder in folders]


def default_root(cluster_id: str) -> Path:
    """Where the checkpoints for a cluster are, unless another place is named."""
    return checkpoint_root() / cluster_id


def checked_root(root: Path | str) -> Path:
    """Only the driver reads and writes it, so a folder of this machine serves a whole cluster."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", str(root)):
        raise ConfigError(
            f"checkpoint={str(root)!r} is not a folder of this machine.",
            hint="Name a local folder, or leave it out: the group's offsets carry an app to another machine.",
        )
    return Path(root).expanduser().resolve()


def _folder_name(name: str) -> str:
    """The name itself where it is plain; otherwise a plain one that no other name has."""
    plain = _ODD_LETTERS.sub("_", name)
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:_TAG_LENGTH]}"
