"""Only the user can read the files that Penstock keeps."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.jvm.private_files import make_private, open_private, write_durably


@pytest.fixture(autouse=True)
def _lax_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_folders_and_files_are_made_for_this_user_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    make_private(home / "audit" / "cluster", home=home)
    with open_private(home / "audit" / "a.jsonl", "a") as file:
        file.write("ä")
    write_durably(home / "run.json", b"{}")
    assert {mode(each) for each in (home, home / "audit", home / "audit" / "cluster")} == {0o700}
    assert {mode(each) for each in (home / "audit" / "a.jsonl", home / "run.json")} == {0o600}


def test_existing_folders_get_private_permissions(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "runs"
    folder.mkdir(parents=True)
    (folder / "old.json").write_text("{}")
    elsewhere = tmp_path / "mine.txt"
    elsewhere.write_text("")
    (folder / "link").symlink_to(elsewhere)
    assert mode(folder / "old.json") == 0o666
    make_private(folder, home=tmp_path / "home")
    assert (mode(folder.parent), mode(folder), mode(folder / "old.json")) == (0o700, 0o700, 0o600)
    assert mode(elsewhere) == 0o666, "links are not followed"
    with open_private(elsewhere, "a"):
        assert mode(elsewhere) == 0o600


def test_folders_that_others_need_are_left_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared, home, above = tmp_path / "tmp", tmp_path / "ann", tmp_path / "above"
    for each in (shared, home, above):
        each.mkdir()
    shared.chmod(0o1777)
    monkeypatch.setattr(Path, "home", lambda: home)
    make_private(shared / "runs", home=shared)
    make_private(home / "runs", home=home)
    make_private(above / "penstock" / "runs", home=above / "penstock")
    assert (mode(shared), mode(home), mode(above)) == (0o1777, 0o777, 0o777)
    assert {mode(each) for each in (shared / "runs", home / "runs", above / "penstock")} == {0o700}
