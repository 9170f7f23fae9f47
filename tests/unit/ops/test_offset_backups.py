"""Offsets that are saved before they are set."""

from pathlib import Path

import pytest

from penstock.errors import SetupError, StateError
from penstock.kafka.admin.consumer_groups import CommittedOffset
from penstock.ops.offset_backups import OffsetBackups

BEFORE = {("orders", 0): CommittedOffset(5, "pk1:map"), ("orders", 1): CommittedOffset(7)}


def test_the_newest_comes_first_and_then_the_one_before(tmp_path: Path) -> None:
    saves = OffsetBackups("cluster", tmp_path)
    saves.write("shipping/eu ☃", reason="reset", touched=[("orders", 0)], before=BEFORE)
    second = saves.write("shipping/eu ☃", reason="import", touched=[("orders", 1)], before={})
    assert saves.newest("shipping/eu ☃") == second
    saves.mark_undone(second)
    first = saves.newest("shipping/eu ☃")
    assert (first.reason, first.touched, dict(first.before)) == ("reset", (("orders", 0),), BEFORE)


def test_groups_and_clusters_do_not_see_each_other(tmp_path: Path) -> None:
    OffsetBackups("cluster", tmp_path).write("shipping", reason="reset", touched=[], before={})
    for cluster, group in (("other", "shipping"), ("cluster", "billing")):
        with pytest.raises(StateError, match="nothing to undo"):
            OffsetBackups(cluster, tmp_path).newest(group)


def test_the_longest_names_have_separate_backups(tmp_path: Path) -> None:
    saves = OffsetBackups("cluster", tmp_path)
    names = ["g" * 250, "g" * 249 + "h", "g" * 32_000]
    saved = {name: saves.write(name, reason="reset", touched=[], before={}) for name in names}
    assert {name: saves.newest(name) for name in names} == saved


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    saves = OffsetBackups("cluster", tmp_path)
    save = saves.write("shipping", reason="reset", touched=[], before={})
    save.path.write_text("{")
    with pytest.raises(SetupError, match=str(save.path)):
        saves.newest("shipping")
