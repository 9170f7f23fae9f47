"""Progress in a file."""

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.errors import ConfigError, StoreError
from penstock.stores import FileOffsets, OffsetStore
from store_rules import RULES


@pytest.mark.parametrize("rule", RULES)
def test_a_file_keeps_the_rules(rule: Callable[[OffsetStore], None], tmp_path: Path) -> None:
    rule(FileOffsets(tmp_path / "deep" / "progress.json"))


def test_another_reads_what_one_has_written(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    token = FileOffsets(path).claim("shop", [("orders", 0)])["orders", 0].token
    assert FileOffsets(path).claim("shop", [("orders", 0)])["orders", 0].token > token


def test_a_file_of_something_else_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(ConfigError, match=r"notes\.txt is not a store of offsets"):
        FileOffsets(path).claim("shop", [])
    assert path.read_text() == "mine"


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file/progress"):
        FileOffsets(tmp_path / "file" / "progress").claim("shop", [])
