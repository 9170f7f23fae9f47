"""Which Python runs the README."""

import sys
from pathlib import Path

import pytest

from docs_check.real import DocsPythonError, find_python


def write_python(path: Path, version: str, code: int = 0) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {version}\nexit {code}\n", "utf-8")
    path.chmod(0o755)
    return str(path)


@pytest.fixture(autouse=True)
def _only_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.delenv("DOCS_PYTHON", raising=False)


def test_python_3_12_on_the_path_comes_first(tmp_path: Path) -> None:
    write_python(tmp_path / "pyenv/versions/3.12.1/bin/python", "3 12 1")
    on_path = write_python(tmp_path / "path/python3.12", "3 12 4")
    assert find_python() == on_path


def test_a_shim_that_does_not_work_is_passed_over_for_the_newest_of_pyenv(tmp_path: Path) -> None:
    write_python(tmp_path / "path/python3.12", "", code=127)
    write_python(tmp_path / "pyenv/versions/3.12.9/bin/python", "3 12 9")
    newest = write_python(tmp_path / "pyenv/versions/3.12.10/bin/python", "3 12 10")
    write_python(tmp_path / "pyenv/versions/3.13.0/bin/python", "3 13 0")
    assert find_python() == newest


def test_without_python_3_12_it_is_the_one_that_runs_the_tests() -> None:
    assert find_python() == sys.executable


def test_the_one_that_you_name_is_used_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_python(tmp_path / "path/python3.12", "3 12 4")
    chosen = write_python(tmp_path / "chosen", "3 13 0")
    monkeypatch.setenv("DOCS_PYTHON", chosen)
    assert find_python() == chosen
    write_python(tmp_path / "chosen", "3 9 1")
    with pytest.raises(DocsPythonError, match=r"is Python 3\.9\.1\. Name a Python 3\.11 or newer"):
        find_python()
    monkeypatch.setenv("DOCS_PYTHON", "no-such-python")
    with pytest.raises(DocsPythonError, match="does not run"):
        find_python()
