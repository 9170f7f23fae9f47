"""Spark's checkpoint of one handler: where it is, and what it says is finished.

Spark writes ``offsets/N`` with the end of batch N before it runs the batch, and ``commits/N`` when the batch is done.
Each appears by one rename, so a file that is there is whole, unless the disk itself was cut off.
"""

import hashlib
import re
import shutil
from pathlib import Path

from penstock.app import Handler
from penstock.errors import ConfigError
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

    def _batches(self, kind: str) -> list[int]:
        return [int(path.name) for path in (self.folder / kind).glob("*") if path.name.isdecimal()]

    def _starts_with_version(self, path: Path) -> bool:
        try:
            return path.read_text("utf-8").startswith(_VERSION_LINE)
        except (OSError, ValueError):
            return False


def checkpoint_of(handler: Handler, root: Path) -> Checkpoint:
    return Checkpoint(root / _folder_name(handler.group) / _folder_name(handler.name))


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
