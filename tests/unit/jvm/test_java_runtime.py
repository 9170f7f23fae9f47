from pathlib import Path

import pytest

from penstock.errors import SetupError
from penstock.jvm.java_runtime import find_java, java_version


def fake_java(folder: Path, body: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{body}\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(
    ("announcement", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21-ea" 2023-09-19', 21),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "25" 2025-09-16', 25),
        ("command not understood", None),
    ],
)
def test_reads_the_major_version(announcement: str, version: int | None) -> None:
    assert java_version(announcement) == version


def test_java_home_comes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = fake_java(tmp_path / "new", "echo 'openjdk version \"21.0.1\"' >&2")
    other = fake_java(tmp_path / "old", "echo 'openjdk version \"11.0.1\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "new"))
    monkeypatch.setenv("PATH", str(other.parent))
    assert find_java() == wanted


def test_without_java_home_the_path_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = fake_java(tmp_path, "echo 'openjdk version \"17\"' >&2")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(java.parent))
    assert find_java() == java


def test_no_java_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match="Java is not installed") as caught:
        find_java()
    assert "Install Java 17" in caught.value.hint


def test_an_old_java_is_named_with_its_version_and_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = fake_java(tmp_path, "echo 'openjdk version \"1.8.0_392\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match=f"{java} is Java 8"):
        find_java()


def test_java_home_that_points_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(SetupError, match=r"JAVA_HOME is .*nowhere"):
        find_java()


@pytest.mark.parametrize(
    ("body", "reason"),
    [("echo 'cannot load libjvm' >&2; exit 1", "cannot load libjvm"), ("exit 7", "exit code 7")],
)
def test_a_java_that_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, reason: str) -> None:
    fake_java(tmp_path, body)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match=f"does not run: {reason}"):
        find_java()


def test_a_program_that_is_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, "echo hello")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match="did not print a Java version"):
        find_java()
