"""Whether the offsets of a group are the pipeline's own, or another tool's."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from penstock.core.records.record import TopicPartition
from penstock.errors import ServerError
from penstock.spark.pipelines.commit_notes import CommitNote, NotedCommits

A, B = ("a", 0), ("b.c", 11)


class Group:
    def __init__(self) -> None:
        self.offsets: dict[TopicPartition, int] = {}
        self.refuses = False

    def commit(self, _group: str, offsets: Mapping[TopicPartition, int], _maps: Mapping[TopicPartition, str]) -> None:
        if self.refuses:
            raise ServerError("no")
        self.offsets.update(offsets)


def test_what_the_pipeline_has_committed_is_not_moved_and_anything_else_is(tmp_path: Path) -> None:
    group, note = Group(), CommitNote(tmp_path / "group" / "copy.committed")
    commits = NotedCommits(group, note, {})
    assert note.moved({A: 3}) == {}  # nothing is known yet
    commits.commit("g", {A: 3, B: 5}, {})
    commits.commit("g", {A: 7}, {})
    assert note.moved(group.offsets) == {}
    assert note.moved({A: 2, B: 5}) == {A: 7}
    assert note.moved({A: 9, B: 1}) == {A: 7, B: 5}
    assert note.moved({}) == {}


def test_a_process_that_died_before_or_after_its_commit_has_moved_nothing(tmp_path: Path) -> None:
    group, note = Group(), CommitNote(tmp_path / "copy.committed")
    commits = NotedCommits(group, note, {A: 1})
    commits.commit("g", {A: 3}, {})
    group.refuses = True
    with pytest.raises(ServerError):
        commits.commit("g", {A: 6}, {})
    assert note.moved({A: 3}) == note.moved({A: 6}) == {}
    assert note.moved({A: 1}) == {A: 6}


def test_a_note_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "copy.committed"
    path.write_text("[[1]", "utf-8")
    assert CommitNote(path).moved({A: 1}) == {}
