"""A pipeline's checkpoint as Spark leaves it if the driver dies at any moment."""

import json
from pathlib import Path

from penstock.spark.pipelines.pipeline_checkpoint import PipelineCheckpoint
from penstock.spark.pipelines.resume_offsets import Offsets, to_json

A, B = ("a", 0), ("b", 0)


def write(folder: Path, kind: str, name: str, text: str) -> None:
    (folder / kind).mkdir(parents=True, exist_ok=True)
    (folder / kind / name).write_text(text)


def begin(folder: Path, *starts: Offsets) -> PipelineCheckpoint:
    folder.joinpath("metadata").write_text('{"id":"5f3c"}')
    for number, offsets in enumerate(starts):
        write(folder / "sources", str(number), "0", f"\0v1\n{to_json(offsets)}")
    return PipelineCheckpoint(folder)


def plan(folder: Path, batch: int, *ends: Offsets | None) -> None:
    lines = ["v1", json.dumps({"batchWatermarkMs": 0}), *("-" if each is None else to_json(each) for each in ends)]
    write(folder, "offsets", str(batch), "\n".join(lines))


def test_the_offsets_of_all_sources_count_and_of_two_on_one_topic_the_slower_one(tmp_path: Path) -> None:
    checkpoint = begin(tmp_path, {A: 0}, {B: 3})
    plan(tmp_path, 0, {A: 5}, {B: 7})
    assert checkpoint.offsets_of(0) == {A: 5, B: 7}
    plan(tmp_path, 1, {A: 9}, {A: 6, B: 8})
    assert checkpoint.offsets_of(1) == {A: 6, B: 8}
    plan(tmp_path, 2, {A: 9}, None)
    assert checkpoint.offsets_of(2) == {A: 9}


def test_a_first_batch_that_was_planned_and_not_finished_is_gone_on_with(tmp_path: Path) -> None:
    checkpoint = begin(tmp_path, {A: 2}, {B: 3})
    assert not checkpoint.is_readable(), "nothing is planned yet"
    plan(tmp_path, 0, {A: 5}, {B: 7})
    assert checkpoint.is_readable()
    assert checkpoint.finished() == checkpoint.start_of(0) == {A: 2, B: 3}
    write(tmp_path, "commits", "0", "v1\n{}")
    assert checkpoint.is_readable()
    assert checkpoint.finished() == checkpoint.start_of(1) == {A: 5, B: 7}


def test_a_damaged_start_is_not_gone_on_with(tmp_path: Path) -> None:
    checkpoint = begin(tmp_path, {A: 2})
    plan(tmp_path, 0, {A: 5})
    write(tmp_path / "sources", "0", "0", "\0v1")
    assert not checkpoint.is_readable()
    assert checkpoint.finished() == {}


def test_it_knows_its_id_and_whether_it_keeps_state(tmp_path: Path) -> None:
    checkpoint = begin(tmp_path, {A: 2})
    assert checkpoint.id() == "5f3c"
    assert not checkpoint.has_state()
    write(tmp_path / "state" / "0" / "0", "", "1.delta", "")
    assert checkpoint.has_state()
