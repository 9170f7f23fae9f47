"""A file beside the checkpoints that says which offsets a pipeline has committed to its group.

A group's offsets do not show who committed them. They are behind the checkpoint either because the driver died before
it committed a batch that Spark had finished, or because another tool has moved them back. The file shows which it was.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from penstock.core.records.record import TopicPartition
from penstock.spark.pipelines.group_offsets import Commits
from penstock.spark.pipelines.resume_offsets import Offsets

_Pairs = dict[TopicPartition, tuple[int, int]]


class HasFolder(Protocol):
    @property
    def folder(self) -> Path: ...


class CommitNote:
    """Two offsets for each partition: the last successful commit, and the commit that was sent after it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def moved(self, committed: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the partitions that another tool has moved, each with the last offset that the pipeline committed."""
        noted = self._read()
        return {tp: noted[tp][1] for tp, offset in committed.items() if tp in noted and offset not in noted[tp]}

    def write(self, pairs: Mapping[TopicPartition, tuple[int, int]]) -> None:
        lines = [[*tp, *pair] for tp, pair in sorted(pairs.items())]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        draft.write_text(json.dumps(lines), "utf-8")
        draft.replace(self._path)

    def _read(self) -> _Pairs:
        """Return the pairs; empty if there is no readable file. Then no partition counts as moved."""
        try:
            lines = json.loads(self._path.read_text("utf-8"))
            return {(str(topic), int(number)): (int(was), int(new)) for topic, number, was, new in lines}
        except (OSError, ValueError, TypeError):
            return {}


def commit_note(checkpoint: HasFolder) -> CommitNote:
    """Return the note beside the pipeline's first checkpoint; all outputs share one group. No checkpoint has a dot."""
    return CommitNote(checkpoint.folder.with_name(f"{checkpoint.folder.name}.committed"))


class NotedCommits:
    """Writes the note before each commit, so that the note has it even if this process dies in between."""

    def __init__(self, commits: Commits, note: CommitNote, committed: Mapping[TopicPartition, int]) -> None:
        self._commits = commits
        self._note = note
        self._made: Offsets = dict(committed)

    def commit(self, group: str, offsets: Mapping[TopicPartition, int], metadata: Mapping[TopicPartition, str]) -> None:
        if not offsets:
            return
        pairs = {tp: (made, made) for tp, made in self._made.items()}
        self._note.write(pairs | {tp: (self._made.get(tp, new), new) for tp, new in offsets.items()})
        self._commits.commit(group, offsets, metadata)
        self._made.update(offsets)
