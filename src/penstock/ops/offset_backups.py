"""The offsets of a group as they were before they were set, on this machine, so that it can be undone."""

import hashlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from penstock.core.records.record import TopicPartition
from penstock.errors import SetupError, StateError
from penstock.jvm.private_files import disk_problems_explained, make_private, write_durably
from penstock.kafka.admin.consumer_groups import Commit
from penstock.paths import HOME_VARIABLE, offset_backups_root, state_home

_UNDONE = ".undone"
# Disks take 255 bytes. A group with a longer name has a folder by its hash, which no other name is written as.
_LONGEST_NAME = 240
_HASHED = "-sha256"


class _Line(msgspec.Struct):
    topic: str
    partition: int
    offset: int
    metadata: str = ""


class _File(msgspec.Struct):
    group: str
    reason: str
    saved_at: float
    touched: list[tuple[str, int]]
    before: list[_Line]


@dataclass(frozen=True)
class OffsetBackup:
    """All that the group had committed, and the partitions that were set then."""

    path: Path
    group: str
    reason: str
    saved_at: float
    touched: tuple[TopicPartition, ...]
    before: Mapping[TopicPartition, Commit]


class OffsetBackups:
    """One file for each time offsets were set; the newest is undone first."""

    def __init__(self, cluster_id: str, root: Path | None = None) -> None:
        self._home = root or state_home()
        self._folder = (root or offset_backups_root()) / cluster_id

    def write(
        self, group: str, *, reason: str, touched: Iterable[TopicPartition], before: Mapping[TopicPartition, Commit]
    ) -> OffsetBackup:
        folder = self._of(group)
        now = time.time()
        lines = [_Line(*tp, each.offset, each.metadata) for tp, each in sorted(before.items())]
        file = _File(group, reason, now, sorted(touched), lines)
        with disk_problems_explained(folder, setting=HOME_VARIABLE):
            make_private(folder, home=self._home)
            path = folder / f"{time.time_ns():020}.json"
            write_durably(path, msgspec.json.encode(file))
        return _save(path, file)

    def newest(self, group: str) -> OffsetBackup:
        found = sorted(path for path in self._of(group).glob("*.json") if _UNDONE not in path.name)
        if not found:
            raise StateError(
                f"There is nothing to undo for group {group!r}.",
                hint="`penstock offsets` saves the old offsets on the machine and for the user that changed them.",
            )
        try:
            return _save(found[-1], msgspec.json.decode(found[-1].read_bytes(), type=_File))
        except (OSError, msgspec.DecodeError) as error:
            raise SetupError(
                f"{found[-1]} cannot be read: {error}.",
                hint="Move this file away to restore from the backup before it.",
            ) from error

    @staticmethod
    def mark_undone(save: OffsetBackup) -> None:
        """It is kept, but not undone again."""
        save.path.rename(save.path.with_name(f"{save.path.stem}{_UNDONE}.json"))

    def _of(self, group: str) -> Path:
        # Any name is a folder's once it is written in letters that every disk takes, and not too many of them.
        name = group.encode()
        written = name.hex()
        return self._folder / (written if len(written) <= _LONGEST_NAME else hashlib.sha256(name).hexdigest() + _HASHED)


def _save(path: Path, file: _File) -> OffsetBackup:
    before = {(each.topic, each.partition): Commit(each.offset, each.metadata) for each in file.before}
    return OffsetBackup(path, file.group, file.reason, file.saved_at, tuple(map(tuple, file.touched)), before)  # type: ignore[arg-type]
