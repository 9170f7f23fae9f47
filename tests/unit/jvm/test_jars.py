"""Resolving through a pretended Java: what is kept, what is refused, what is healed."""

import hashlib
import io
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.errors import SetupError
from penstock.jvm import jars
from penstock.jvm.coordinates import Artifact, Coordinates
from penstock.jvm.folders import jar_cache
from penstock.jvm.jars import resolve

TOOL = Coordinates("Tool 1", (Artifact("org.example", "tool", "1"),))
PINNED = Coordinates("Tool 1", TOOL.artifacts, lock="tool.sha256")
ARCHIVE = Coordinates("Tool 1", TOOL.artifacts, unpack=True)
JAR = "org/example/tool/1/tool-1.jar"
LIBRARY = "org/example/library/7/library-7.jar"
UNREACHABLE = "\tHttpClientHandler: Connection refused url=http://mirror.example/x\n"


FAKE_IVY = """#!{python}
import pathlib, shutil, sys

here = pathlib.Path({here!r})
if sys.argv[1:] == ["-version"]:
    sys.stderr.write('openjdk version "17.0.15" 2025-04-15')
    sys.exit(0)
with (here / "runs").open("a") as runs:
    runs.write("run\\n")
answers = sorted(here.glob("answer-*"))
if answers:
    sys.stdout.write(answers[0].read_text())
    answers[0].unlink()
    sys.exit(1)
target = sys.argv[sys.argv.index("-retrieve") + 1].split("/[")[0]
shutil.copytree(here / "registry", target, dirs_exist_ok=True)
"""


@dataclass(frozen=True)
class FakeMaven:
    """What the pretended registry holds, and how often it was asked."""

    folder: Path

    def hold(self, path: str, content: bytes) -> None:
        file = self.folder / "registry" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    def fail(self, *outputs: str) -> None:
        """Answer the next runs with these outputs and an exit code."""
        for number, output in enumerate(outputs):
            (self.folder / f"answer-{number}").write_text(output)

    @property
    def runs(self) -> int:
        log = self.folder / "runs"
        return len(log.read_text().splitlines()) if log.exists() else 0


@pytest.fixture(autouse=True)
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMaven:
    folder = tmp_path / "maven"
    (folder / "registry").mkdir(parents=True)
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(FAKE_IVY.format(python=sys.executable, here=str(folder)))
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    made = FakeMaven(folder)
    made.hold(JAR, b"tool")
    made.hold(LIBRARY, b"library")
    return made


class Heard:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, text: str, **_: int) -> None:
        self.lines.append(text)


def kept() -> list[str]:
    """Return everything in the cache but the lock."""
    return sorted(path.name for path in jar_cache().iterdir() if path.name != "lock")


def test_a_set_is_fetched_once(maven: FakeMaven) -> None:
    first = resolve(TOOL)
    assert [path.read_bytes() for path in first] == [b"library", b"tool"]
    assert resolve(TOOL) == first
    assert maven.runs == 1


def test_afterwards_no_java_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    first = resolve(TOOL)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert resolve(TOOL) == first


@pytest.mark.parametrize("content", [b"", b"to", b"TOOL"])
def test_a_damaged_jar_is_fetched_anew_with_a_line_that_says_so(maven: FakeMaven, content: bytes) -> None:
    jar = resolve(TOOL)[1]
    jar.write_bytes(content)
    heard = Heard()
    assert resolve(TOOL, progress=heard)[1].read_bytes() == b"tool"
    assert heard.lines[0] == f"Tool 1 was damaged on disk ({JAR}): fetching it anew"
    assert maven.runs == 2


def test_a_lost_manifest_is_not_trusted(maven: FakeMaven) -> None:
    resolve(TOOL)
    next(jar_cache().glob("tool-*/manifest.json")).unlink()
    resolve(TOOL)
    assert maven.runs == 2


def test_a_passing_failure_is_tried_again(maven: FakeMaven) -> None:
    maven.fail(UNREACHABLE, UNREACHABLE)
    heard = Heard()
    assert resolve(TOOL, progress=heard)
    assert heard.lines == [
        "The download broke off, trying again (2 of 3)",
        "The download broke off, trying again (3 of 3)",
    ]


def test_a_failure_leaves_nothing_behind(maven: FakeMaven) -> None:
    maven.fail(UNREACHABLE, UNREACHABLE, UNREACHABLE)
    with pytest.raises(SetupError, match="out of reach"):
        resolve(TOOL)
    assert kept() == []
    assert maven.runs == 3


def test_an_unknown_version_is_not_tried_again(maven: FakeMaven) -> None:
    maven.fail("\t\t:: org.example#tool;1: not found\n")
    with pytest.raises(SetupError, match=r"has no org\.example:tool:1"):
        resolve(TOOL)
    assert maven.runs == 1


def test_drafts_of_killed_processes_are_swept() -> None:
    draft = jar_cache() / "draft-abandoned"
    draft.mkdir(parents=True)
    resolve(TOOL)
    assert not draft.exists()


def test_a_pinned_set_has_to_match_its_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = {path: hashlib.sha256(content).hexdigest() for path, content in ((JAR, b"tool"), (LIBRARY, b"library"))}
    monkeypatch.setattr(jars, "read_lock", lambda _: digests)
    assert len(resolve(PINNED)) == 2


def test_a_pinned_set_that_differs_is_refused_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "read_lock", lambda _: {JAR: "0" * 64, LIBRARY: hashlib.sha256(b"library").hexdigest()})
    with pytest.raises(SetupError, match=r"tool-1\.jar has SHA-256"):
        resolve(PINNED)
    assert kept() == []


def hold_archive(maven: FakeMaven, member: str) -> None:
    (maven.folder / "registry" / LIBRARY).unlink()
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        entry = tarfile.TarInfo(member)
        entry.size = 5
        tar.addfile(entry, io.BytesIO(b"hello"))
    maven.hold(JAR, content.getvalue())


def test_an_archive_is_kept_unpacked(maven: FakeMaven) -> None:
    hold_archive(maven, "lib/inner.jar")
    [file] = resolve(ARCHIVE)
    assert (file.parts[-2:], file.read_bytes()) == (("lib", "inner.jar"), b"hello")


def test_an_archive_that_leads_outside_is_refused(maven: FakeMaven, tmp_path: Path) -> None:
    hold_archive(maven, "../../../escaped.jar")
    with pytest.raises(SetupError, match="leads outside"):
        resolve(ARCHIVE)
    assert not list(tmp_path.rglob("escaped.jar"))


def test_a_cache_that_cannot_be_written_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "file"))
    with pytest.raises(SetupError, match="Cannot write to") as caught:
        resolve(TOOL)
    assert "PENSTOCK_CACHE" in caught.value.hint
