from pathlib import Path

import pytest

from penstock.jvm.manifest import MANIFEST_NAME, find_damage, read_manifest, take_manifest, write_manifest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "org").mkdir()
    (tmp_path / "org" / "a.jar").write_bytes(b"a" * 1000)
    (tmp_path / "org" / "b.jar").write_bytes(b"b" * 1000)
    write_manifest(tmp_path, take_manifest(tmp_path))
    return tmp_path


def damage(folder: Path) -> str | None:
    manifest = read_manifest(folder)
    assert manifest is not None
    return find_damage(folder, manifest)


def test_a_written_manifest_is_complete(folder: Path) -> None:
    assert damage(folder) is None


def test_a_truncated_file_is_found(folder: Path) -> None:
    (folder / "org" / "b.jar").write_bytes(b"b" * 10)
    assert damage(folder) == "org/b.jar"


def test_a_file_altered_to_the_same_size_is_found(folder: Path) -> None:
    (folder / "org" / "a.jar").write_bytes(b"x" * 1000)
    assert damage(folder) == "org/a.jar"


def test_a_missing_file_is_found(folder: Path) -> None:
    (folder / "org" / "a.jar").unlink()
    assert damage(folder) == "org/a.jar"


@pytest.mark.parametrize("content", [b"", b"{", b'{"files": 3}', b"\xff\xfe"])
def test_a_damaged_manifest_counts_as_missing(folder: Path, content: bytes) -> None:
    (folder / MANIFEST_NAME).write_bytes(content)
    assert read_manifest(folder) is None
