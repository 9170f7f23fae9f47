"""Keeps progress in a file, for members on one machine."""

import fcntl
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.app.offset_store import Progress, SavedProgress
from penstock.core.records.record import TopicPartition
from penstock.errors import ConfigError, StoreError

_Entries = dict[str, Any]


class FileOffsets:
    """A JSON file. Each change replaces the whole file, so that it is never half written; a second file is the lock."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._lock = self._path.with_name(self._path.name + ".lock")

    def claim(self, group: str, tps: Sequence[TopicPartition]) -> Mapping[TopicPartition, SavedProgress]:
        with self._changing(group) as entries:
            found = {}
            for tp in tps:
                entry = entries.setdefault(_name(tp), {"token": 0, "offset": None, "metadata": ""})
                entry["token"] += 1
                found[tp] = SavedProgress(entry["token"], entry["offset"], entry["metadata"])
            return found

    def save(self, group: str, progress: Mapping[TopicPartition, Progress]) -> Collection[TopicPartition]:
        with self._changing(group) as entries:
            claimed = [tp for tp, each in progress.items() if _token(entries, tp) != each.token]
            for tp, each in progress.items():
                if tp not in claimed:
                    entries[_name(tp)] = {"token": each.token, "offset": each.offset, "metadata": each.metadata}
            return claimed

    def forget(self, group: str, tps: Mapping[TopicPartition, int]) -> None:
        with self._changing(group) as entries:
            for tp, token in tps.items():
                if _token(entries, tp) == token:
                    entries[_name(tp)] |= {"offset": None, "metadata": ""}

    @contextmanager
    def _changing(self, group: str) -> Iterator[_Entries]:
        """The group's entries, which are written to the file at the end of the block."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._lock.open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                content = self._read()
                yield content.setdefault(group, {})
                self._write(content)
        except OSError as error:
            raise StoreError(
                f"Progress cannot be saved in {self._path}: {error}.",
                hint="Check the folder, its disk and its permissions.",
            ) from error

    def _read(self) -> dict[str, _Entries]:
        try:
            content = json.loads(self._path.read_text())
        except FileNotFoundError:
            return {}
        except ValueError as error:
            content = error
        if not isinstance(content, dict):
            reason = content if isinstance(content, ValueError) else "it has no JSON object"
            raise ConfigError(
                f"{self._path} is not a store of offsets: {reason}.",
                hint="Name another file with offsets=, or move this file to start without progress.",
            )
        return content

    def _write(self, content: dict[str, _Entries]) -> None:
        draft = self._path.with_name(self._path.name + ".new")
        with draft.open("w") as file:
            json.dump(content, file, indent=1, sort_keys=True)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)


def _name(tp: TopicPartition) -> str:
    return f"{tp[0]}[{tp[1]}]"


def _token(entries: _Entries, tp: TopicPartition) -> int:
    return int(entries.get(_name(tp), {}).get("token", 0))
