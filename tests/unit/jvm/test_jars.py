"""Sets of jars: kept, refused and repaired."""

import io
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from maven_registry import MavenRegistry, maven_registry
from penstock.errors import SetupError
from penstock.jvm import jars, maven_connection
from penstock.jvm.coordinates import Artifact, Coordinates
from penstock.jvm.jars import resolve
from penstock.jvm.manifest import Manifest
from penstock.paths import jar_cache

TOOL = Coordinates("Tool 1", (Artifact("org.example", "tool", "1"),), lock="tool.sha256")
ARCHIVE = Coordinates("Tool 1", TOOL.artifacts, lock="tool.sha256", unpack=True)
JAR = "org/example/tool/1/tool-1.jar"
LIBRARY = "org/example/library/7/library-7.jar"


@pytest.fixture(autouse=True)
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MavenRegistry]:
    """One whose files at the time of the question are what the lock lists, unless a test says otherwise."""
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(maven_connection, "_PAUSE_SECONDS", (0.0, 0.0))
    with maven_registry() as made:
        made.files.update({JAR: b"tool", LIBRARY: b"library"})
        monkeypatch.setenv("PENSTOCK_MAVEN_URL", made.url)
        monkeypatch.setattr(jars, "read_lock", lambda _: Manifest(made.lock()))
        yield made


class Heard:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, text: str, **_: object) -> None:
        self.lines.append(text)


def kept() -> list[str]:
    """Return everything in the cache except the lock."""
    return sorted(path.name for path in jar_cache().iterdir() if path.name != "lock")


def test_a_set_is_fetched_once(registry: MavenRegistry) -> None:
    first = resolve(TOOL)
    assert [path.read_bytes() for path in first] == [b"library", b"tool"]
    assert resolve(TOOL) == first
    assert len(registry.asked) == 2


def test_neither_java_nor_pyspark_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert resolve(TOOL)


@pytest.mark.parametrize("content", [b"", b"to", b"TOOL"])
def test_a_damaged_jar_is_fetched_again_with_a_message(registry: MavenRegistry, content: bytes) -> None:
    jar = resolve(TOOL)[1]
    jar.write_bytes(content)
    heard = Heard()
    assert resolve(TOOL, progress=heard)[1].read_bytes() == b"tool"
    assert heard.lines[0] == f"Tool 1 was damaged on disk ({JAR}): fetching it again"
    assert len(registry.asked) == 4


def test_a_lost_manifest_is_not_trusted(registry: MavenRegistry) -> None:
    resolve(TOOL)
    next(jar_cache().glob("tool-*/manifest.json")).unlink()
    resolve(TOOL)
    assert len(registry.asked) == 4


def test_a_failure_leaves_nothing_behind(registry: MavenRegistry) -> None:
    registry.faults[JAR] = [0.5, 0.0, 503]
    with pytest.raises(SetupError, match="503 Service Unavailable"):
        resolve(TOOL)
    assert kept() == []


def test_an_interrupt_leaves_nothing_behind(registry: MavenRegistry) -> None:
    def interrupt(text: str, *, done: int = 0, total: int = 0, unit: str = "records") -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        resolve(TOOL, progress=interrupt)
    assert kept() == []


def test_drafts_of_killed_processes_are_swept() -> None:
    draft = jar_cache() / "draft-abandoned"
    draft.mkdir(parents=True)
    resolve(TOOL)
    assert not draft.exists()


def test_a_set_that_differs_from_its_lock_is_refused_and_not_kept(
    registry: MavenRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = Manifest(registry.lock())
    monkeypatch.setattr(jars, "read_lock", lambda _: listed)
    registry.files[JAR] = b"evil"
    with pytest.raises(SetupError, match=r"org\.example:tool:1 arrived damaged \(its SHA-256 is"):
        resolve(TOOL)
    assert kept() == []


def hold_archive(registry: MavenRegistry, member: str) -> None:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        entry = tarfile.TarInfo(member)
        entry.size = 5
        tar.addfile(entry, io.BytesIO(b"hello"))
    registry.files = {JAR: content.getvalue()}


def test_an_archive_is_kept_unpacked(registry: MavenRegistry) -> None:
    hold_archive(registry, "lib/inner.jar")
    [file] = resolve(ARCHIVE)
    assert (file.parts[-2:], file.read_bytes()) == (("lib", "inner.jar"), b"hello")


def test_an_archive_that_leads_outside_is_refused(registry: MavenRegistry, tmp_path: Path) -> None:
    hold_archive(registry, "../../../escaped.jar")
    with pytest.raises(SetupError, match="leads out of its folder"):
        resolve(ARCHIVE)
    assert not list(tmp_path.rglob("escaped.jar"))


def test_a_cache_that_cannot_be_written_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "file"))
    with pytest.raises(SetupError, match="Cannot write to") as caught:
        resolve(TOOL)
    assert "PENSTOCK_CACHE" in caught.value.hint
