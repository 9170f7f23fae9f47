"""The second JVM with the same Java and jars writes an archive of its classes when it ends; all later ones use it."""

import os
from pathlib import Path

import pytest

from penstock.jvm.class_archive import archive_flags, writes_archive

_WRITES, _USES = "-XX:ArchiveClassesAtExit=", "-XX:SharedArchiveFile="


@pytest.fixture(autouse=True)
def classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "classes"


@pytest.fixture
def java(tmp_path: Path) -> Path:
    path = tmp_path / "java"
    path.write_text("a Java")
    return path


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    path = tmp_path / "kafka.jar"
    path.write_text("classes")
    return path


def _written_by(flags: list[str]) -> Path:
    return Path(next(flag.removeprefix(_WRITES) for flag in flags if flag.startswith(_WRITES)))


def _used_by(flags: list[str]) -> Path:
    return Path(next(flag.removeprefix(_USES) for flag in flags if flag.startswith(_USES)))


def flags_of(name: str, java: Path, class_path: list[Path]) -> list[str]:
    """For a JVM that is not the first of its class path."""
    return archive_flags(name, java, class_path) or archive_flags(name, java, class_path)


def _end_jvm(flags: list[str], content: bytes = b"\xa8\xab\x0b\xf0classes") -> None:
    """Write the files that a JVM with these flags writes."""
    _written_by(flags).write_bytes(content)


def test_the_first_jvm_writes_nothing_and_the_second_what_all_others_use(java: Path, jar: Path) -> None:
    assert archive_flags("kafka", java, [jar]) == []
    second = archive_flags("kafka", java, [jar])
    assert writes_archive(second)
    _end_jvm(second)
    third = archive_flags("kafka", java, [jar])
    assert not writes_archive(third)
    assert _used_by(third).read_bytes().endswith(b"classes")
    assert _used_by(archive_flags("kafka", java, [jar])) == _used_by(third)


def test_an_archive_that_a_killed_jvm_began_is_not_used(java: Path, jar: Path) -> None:
    """Java crashes on an incomplete archive.

    Java writes the header last, so the header shows whether it is complete.
    """
    _end_jvm(flags_of("kafka", java, [jar]), bytes(8) + b"classes")
    assert writes_archive(flags_of("kafka", java, [jar]))
    _end_jvm(flags_of("kafka", java, [jar]), b"")
    assert writes_archive(flags_of("kafka", java, [jar]))


def test_an_archive_that_was_cut_off_is_removed_and_written_again(java: Path, jar: Path) -> None:
    _end_jvm(flags_of("kafka", java, [jar]))
    archive = _used_by(flags_of("kafka", java, [jar]))
    archive.write_bytes(b"\xa8\xab\x0b\xf0")
    assert writes_archive(flags_of("kafka", java, [jar]))
    assert not archive.exists()


def test_another_java_another_jar_and_another_program_have_separate_archives(java: Path, jar: Path) -> None:
    _end_jvm(flags_of("kafka", java, [jar]))
    assert not writes_archive(flags_of("kafka", java, [jar]))
    assert writes_archive(flags_of("spark", java, [jar]))
    assert writes_archive(flags_of("kafka", java, [jar, jar]))
    jar.write_text("newer classes")
    assert writes_archive(flags_of("kafka", java, [jar]))
    jar.write_text("classes")
    java.write_text("a newer Java")
    assert writes_archive(flags_of("kafka", java, [jar]))


def test_of_several_that_were_written_at_the_same_time_one_is_kept(java: Path, jar: Path, classes: Path) -> None:
    several = [flags_of("kafka", java, [jar]) for _ in range(3)]
    for flags in several:
        _end_jvm(flags)
    archive = _used_by(flags_of("kafka", java, [jar]))
    assert [path for path in classes.iterdir() if path.suffix != ".seen"] == [archive]


def test_archives_that_were_not_used_for_longest_are_removed(java: Path, jar: Path, classes: Path) -> None:
    for number in range(10):
        name = f"program{number}"
        _end_jvm(flags_of(name, java, [jar]))
        archive = _used_by(flags_of(name, java, [jar]))
        os.utime(archive, (number, number))
    kept = sorted(path.name.partition("-")[0] for path in classes.glob("*.jsa"))
    assert kept == [f"program{number}" for number in range(4, 10)]


def test_in_a_read_only_folder_a_jvm_starts_without_an_archive(
    java: Path, jar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(java))  # a file, not a folder
    assert archive_flags("kafka", java, [jar]) == []
    assert archive_flags("kafka", java, [jar]) == []
