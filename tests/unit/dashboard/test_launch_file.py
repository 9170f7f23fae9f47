"""``penstock ui --open``: other users of the machine see the arguments of the browser, but not the link."""

import os
import stat
import webbrowser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from penstock.dashboard import opened_in_browser

LINK = 'http://127.0.0.1:8000/sign-in?token=a&b="<c>'


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    asked: list[str] = []

    def open_(address: str) -> bool:
        asked.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", open_)
    return asked


def path_of(address: str) -> Path:
    assert address.startswith("file://")
    return Path(unquote(urlsplit(address).path))


def test_the_browser_gets_a_file_that_only_this_user_can_read_and_that_is_deleted(opened: list[str]) -> None:
    before = os.umask(0)
    try:
        with opened_in_browser(LINK) as is_open:
            assert is_open
            (address,) = opened
            assert "token" not in address
            path = path_of(address)
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            text = path.read_text("utf-8")
            assert 'url=http://127.0.0.1:8000/sign-in?token=a&amp;b=&quot;&lt;c&gt;"' in text
            assert "<script" not in text
    finally:
        os.umask(before)
    assert not path.exists()


def test_a_file_of_an_earlier_process_with_the_same_id_is_replaced(opened: list[str]) -> None:
    with opened_in_browser(LINK):
        path = path_of(opened[0])
    path.write_text("old", "utf-8")
    path.chmod(0o644)
    with opened_in_browser(LINK):
        assert "sign-in" in path.read_text("utf-8")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_cannot_be_written_opens_nothing(
    opened: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "file" / "home"))
    with opened_in_browser(LINK) as is_open:
        assert not is_open
    assert not opened
