from pathlib import Path

import msgspec
import pytest

from penstock.devkit import data_folder
from penstock.devkit.cluster_layout import Layout, Node
from penstock.devkit.data_folder import (
    MARKER,
    StoredCluster,
    format_storage,
    new_cluster_id,
    read_cluster,
    was_killed,
    wipe,
)
from penstock.errors import ServerError, SetupError


def mark(data: Path) -> None:
    (data / MARKER).write_bytes(msgspec.json.encode(StoredCluster("id", 3)))


def test_cluster_ids_are_kafkas() -> None:
    ids = {new_cluster_id() for _ in range(300)}
    assert len(ids) == 300
    assert all(len(text) == 22 and not text.startswith("-") for text in ids)


def test_a_folder_remembers_what_it_was_made_for(tmp_path: Path) -> None:
    assert read_cluster(tmp_path) is None
    mark(tmp_path)
    assert read_cluster(tmp_path) == StoredCluster("id", 3)


def test_an_unreadable_marker_is_an_error(tmp_path: Path) -> None:
    (tmp_path / MARKER).write_text("{")
    with pytest.raises(SetupError, match="is damaged"):
        read_cluster(tmp_path)


def test_wiping_deletes_only_what_was_made(tmp_path: Path) -> None:
    mark(tmp_path)
    for folder in ("node-1", "registry"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x").touch()
    (tmp_path / "thesis.txt").touch()
    assert wipe(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_wiping_a_folder_that_penstock_did_not_make_does_nothing(tmp_path: Path) -> None:
    (tmp_path / "node-1").mkdir()
    assert not wipe(tmp_path)
    assert (tmp_path / "node-1").exists()


def test_wiping_all_removes_the_folder(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    mark(data)
    assert wipe(data)
    assert not data.exists()


def test_a_broker_that_ran_and_did_not_say_that_it_stopped_was_killed(tmp_path: Path) -> None:
    assert not was_killed(tmp_path), "it never ran"
    (tmp_path / ".lock").touch()
    assert was_killed(tmp_path)
    (tmp_path / ".kafka_cleanshutdown").touch()
    assert not was_killed(tmp_path)


def test_a_java_that_does_not_end_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\nexec sleep 600\n")
    java.chmod(0o700)
    monkeypatch.setattr(data_folder, "START_SECONDS", 0.1)
    layout = Layout("id", str(tmp_path / "data"), "512m", (Node(1, 9092, 20001),))
    with pytest.raises(ServerError, match=r"has not formatted the data folder .* within 0.1 s") as error:
        format_storage(tmp_path, layout, java=java, jars=())
    assert "again" in (error.value.hint or "")
