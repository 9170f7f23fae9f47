"""Saves the offsets of a group on this machine before they are changed, for ``penstock offsets undo``."""

import hashlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from penstock.core.records.record import TopicPartition
from penstock.errors import SetupError, StateError
from penstock.jvm.private_files import disk_problems_explained, make_private, write_durably
from penstock.kafka.admin.consumer_groups import CommittedOffset
from penstock.paths import HOME_VARIABLE, offset_backups_root, state_home

_UNDONE = ".undone"
# File systems allow names of 255 bytes. A longer name becomes its hash with a suffix that no hex name has.
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
    """All commits that the group had, and the partitions whose offsets were changed."""

    path: Path
    group: str
    reason: str
    saved_at: float
    touched: tuple[TopicPartition, ...]
    before: Mapping[TopicPartition, CommittedOffset]


class OffsetBackups:
    """Keeps one file for each change of a group's offsets. ``undo`` restores the newest first."""

    def __init__(self, cluster_id: str, root: Path | None = None) -> None:
        self._home = root or state_home()
        self._folder = (root or offset_backups_root()) / cluster_id

    def write(
        self,
        group: str,
        *,
        reason: str,
        touched: Iterable[TopicPartition],
        before: Mapping[TopicPartition, CommittedOffset],
    ) -> OffsetBackup:
        folder = self._of(group)
        now = time.time()
        lines = [_Line(*tp, each.offset, each.metadata) for tp, each in sorted(before.items())]
        file = _File(group, reason, now, sorted(touched), lines)
        with disk_problems_explained(folder, setting=HOME_VARIABLE):
            make_private(folder, home=self._home)
            path = folder / f"{time.time_ns():020}.json"
            write_durably(path, msgspec.json.encode(file))
        return _backup(path, file)

    def newest(self, group: str) -> OffsetBackup:
        found = sorted(path for path in self._of(group).glob("*.json") if _UNDONE not in path.name)
        if not found:
            raise StateError(
                f"There is nothing to undo for group {group!r}.",
                hint="`penstock offsets` saves the old offsets on the machine and for the user that changed them.",
            )
        try:
            return _backup(found[-1], msgspec.json.decode(found[-1].read_bytes(), type=_File))
        except (OSError, msgspec.DecodeError) as error:
            raise SetupError(
                f"{found[-1]} cannot be read: {error}.",
                hint="Move this file away to restore from the backup before it.",
            ) from error

    @staticmethod
    def mark_undone(backup: OffsetBackup) -> None:
        """Rename the file, so that it is kept but not restored again."""
        backup.path.rename(backup.path.with_name(f"{backup.path.stem}{_UNDONE}.json"))

    def _of(self, group: str) -> Path:
        # Group names may have any characters, so the folder is named by their bytes in hex.
        name = group.encode()
        written = name.hex()
        return self._folder / (written if len(written) <= _LONGEST_NAME else hashlib.sha256(name).hexdigest() + _HASHED)


def _backup(path: Path, file: _File) -> OffsetBackup:
    before = {(each.topic, each.partition): CommittedOffset(each.offset, each.metadata) for each in file.before}
    return OffsetBackup(path, file.group, file.reason, file.saved_at, tuple(map(tuple, file.touched)), before)  # type: ignore[arg-type]
