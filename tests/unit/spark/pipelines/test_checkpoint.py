"""Spark's checkpoint folder, whole and damaged."""

from pathlib import Path

import pytest

from penstock import App
from penstock.errors import ConfigError
from penstock.spark.pipelines.checkpoint import Checkpoint, checked_root, checkpoint_of, checkpoints_of

COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return Checkpoint(tmp_path / "handle")


def plan(checkpoint: Checkpoint, batch: int, end: int, text: str | None = None) -> None:
    """Write what Spark writes before it runs a batch."""
    folder = checkpoint.folder / "offsets"
    folder.mkdir(parents=True, exist_ok=True)
    whole = f'v1\n{{"batchWatermarkMs":0,"conf":{{}}}}\n{{"orders":{{"0":{end}}}}}'
    (folder / str(batch)).write_text(whole if text is None else text)
    (folder / f".{batch}.crc").write_bytes(b"crc\x00\xff")


def finish(checkpoint: Checkpoint, batch: int, text: str = COMMIT) -> None:
    """Write what Spark writes when a batch is done."""
    folder = checkpoint.folder / "commits"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / str(batch)).write_text(text)
    (folder / f".{batch + 1}.1c0e.tmp").write_text("v")


def test_a_folder_that_is_not_there_has_finished_nothing(checkpoint: Checkpoint) -> None:
    assert checkpoint.finished() == {}
    assert not checkpoint.is_readable()
    checkpoint.set_aside()


def test_only_a_batch_with_a_commit_is_finished(checkpoint: Checkpoint) -> None:
    plan(checkpoint, 0, 10)
    assert checkpoint.finished() == {}
    assert not checkpoint.is_readable()
    finish(checkpoint, 0)
    plan(checkpoint, 1, 20)
    assert checkpoint.finished() == {("orders", 0): 10}
    assert checkpoint.is_readable()
    assert (checkpoint.is_finished(0), checkpoint.is_finished(1)) == (True, False)
    assert checkpoint.offsets_of(1) == {("orders", 0): 20}


def test_batches_are_compared_as_numbers(checkpoint: Checkpoint) -> None:
    for batch in (9, 10):
        plan(checkpoint, batch, batch)
        finish(checkpoint, batch)
    assert checkpoint.finished() == {("orders", 0): 10}


@pytest.mark.parametrize("text", ["", "v1", "v1\n{}", 'v1\n{}\n{"orders":', "v1\n{}\n-", 'v2\n{}\n{"orders":{"0":1}}'])
def test_a_damaged_plan_counts_as_nothing(checkpoint: Checkpoint, text: str) -> None:
    plan(checkpoint, 0, 10, text)
    finish(checkpoint, 0)
    assert checkpoint.finished() == {}
    assert not checkpoint.is_readable()


def test_a_damaged_plan_of_the_next_batch_makes_it_unreadable_but_hides_nothing(checkpoint: Checkpoint) -> None:
    plan(checkpoint, 0, 10)
    finish(checkpoint, 0)
    plan(checkpoint, 1, 20, "v1\n")
    assert checkpoint.finished() == {("orders", 0): 10}
    assert not checkpoint.is_readable()


def test_a_damaged_commit_makes_it_unreadable(checkpoint: Checkpoint) -> None:
    plan(checkpoint, 0, 10)
    finish(checkpoint, 0, "")
    assert checkpoint.finished() == {("orders", 0): 10}
    assert not checkpoint.is_readable()


def test_batches_that_were_planned_and_not_finished_can_be_planned_again(checkpoint: Checkpoint) -> None:
    plan(checkpoint, 0, 10)
    finish(checkpoint, 0)
    plan(checkpoint, 1, 500, "v1\n")
    assert not checkpoint.is_readable()
    checkpoint.forget_unfinished()
    assert checkpoint.offsets_of(1) == {}
    assert checkpoint.finished() == {("orders", 0): 10}
    assert checkpoint.is_readable()
    assert {path.name for path in (checkpoint.folder / "offsets").iterdir()} == {"0", ".0.crc"}


def test_all_checkpoints_of_a_group_are_found_and_those_set_aside_are_not(tmp_path: Path) -> None:
    app = App("shop/eu")

    @app.consume("orders")
    def ship(value: bytes) -> None: ...

    @app.consume("returns")
    def refund(value: bytes) -> None: ...

    for handler in app.handlers:
        plan(checkpoint_of(handler, tmp_path), 0, 10)
    (refunding, shipping) = checkpoints_of("shop/eu", tmp_path)
    assert [refunding.folder, shipping.folder] == [checkpoint_of(each, tmp_path).folder for each in app.handlers[::-1]]
    shipping.set_aside()
    assert [each.folder for each in checkpoints_of("shop/eu", tmp_path)] == [refunding.folder]
    assert checkpoints_of("shop", tmp_path) == []


def test_only_the_last_one_set_aside_is_kept(checkpoint: Checkpoint) -> None:
    for end in (1, 2):
        plan(checkpoint, 0, end)
        checkpoint.set_aside()
        assert not checkpoint.folder.exists()
    (aside,) = checkpoint.folder.parent.iterdir()
    assert Checkpoint(aside).offsets_of(0) == {("orders", 0): 2}


def test_groups_and_handlers_with_odd_names_stay_inside_the_root_and_apart(tmp_path: Path) -> None:
    folders = set()
    for group in ("shop", "..", ".", "a/b", "a_b", "a:b", "Ä"):
        app = App(group)

        @app.consume("orders")
        def handle(value: bytes) -> None: ...

        folder = checkpoint_of(app.handlers[0], tmp_path).folder
        assert folder.parent.parent == tmp_path
        assert folder.resolve() == folder
        folders.add(folder)
    assert len(folders) == 7


def test_a_checkpoint_elsewhere_is_refused() -> None:
    for elsewhere in ("s3a://bucket/x", "hdfs://host:1/x", "file:///x"):
        with pytest.raises(ConfigError, match="not a folder of this machine"):
            checked_root(elsewhere)
    assert checked_root("x") == Path.cwd() / "x"
