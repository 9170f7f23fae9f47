"""Downloads of exact files: retried, resumed, refused, and their errors."""

import base64
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_helpers import wait_for
from maven_registry import MavenRegistry, maven_registry
from penstock.errors import ConfigError, SetupError
from penstock.jvm import download as downloading
from penstock.jvm import maven_connection
from penstock.jvm.download import download
from penstock.jvm.progress_callback import ProgressCallback, silent

JAR = "org/example/tool/1/tool-1.jar"
LIBRARY = "org/example/library/7/library-7.jar"


class Heard:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.amounts: list[tuple[int, int]] = []

    def __call__(self, text: str, *, done: int = 0, total: int = 0, unit: str = "records") -> None:
        if unit == "bytes":
            self.amounts.append((done, total))
        if text not in self.lines:
            self.lines.append(text)


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[MavenRegistry]:
    for name in ("http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr(maven_connection, "_PAUSE_SECONDS", (0.0, 0.0))
    with maven_registry() as made:
        made.files.update({JAR: b"tool" * 100_000, LIBRARY: b"library"})
        monkeypatch.setenv("PENSTOCK_MAVEN_URL", made.url)
        yield made


def fetch(registry: MavenRegistry, target: Path, progress: ProgressCallback = silent) -> dict[str, bytes]:
    download("Tool 1", registry.lock(), target, progress=progress)
    return {path.relative_to(target).as_posix(): path.read_bytes() for path in target.rglob("*") if path.is_file()}


def test_every_file_is_stored_under_its_path_and_requested_once(registry: MavenRegistry, tmp_path: Path) -> None:
    heard = Heard()
    assert fetch(registry, tmp_path, heard) == registry.files
    assert sorted(registry.asked) == [(LIBRARY, None), (JAR, None)]
    assert heard.lines == ["Fetching Tool 1"]
    assert heard.amounts[0] == (0, 400_007)
    assert heard.amounts[-1] == (400_007, 400_007)


def test_no_file_is_created_after_an_interrupt(registry: MavenRegistry, tmp_path: Path) -> None:
    """The caller removes the folder then; a file that appears meanwhile would keep it."""
    registry.held.add(LIBRARY)

    def interrupt(text: str, *, done: int = 0, total: int = 0, unit: str = "records") -> None:
        if done:
            wait_for(lambda: LIBRARY in [path for path, _ in registry.asked], "the request")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(registry, tmp_path, interrupt)
    there = sorted(tmp_path.rglob("*"))
    registry.released.set()
    wait_for(lambda: not [thread for thread in threading.enumerate() if thread.name == "penstock-download"], "workers")
    assert sorted(tmp_path.rglob("*")) == there


def test_an_interrupted_download_resumes_where_it_stopped(registry: MavenRegistry, tmp_path: Path) -> None:
    registry.faults[JAR] = [0.5]
    heard = Heard()
    assert fetch(registry, tmp_path, heard) == registry.files
    assert (JAR, "bytes=200000-") in registry.asked
    assert "Trying again (2 of 3): org.example:tool:1 arrived damaged (200,000 of 400,000 bytes)." in heard.lines
    assert heard.amounts[-1] == (400_007, 400_007)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_registry_is_asked_again(registry: MavenRegistry, tmp_path: Path, status: int) -> None:
    registry.faults[JAR] = [status, status]
    assert fetch(registry, tmp_path) == registry.files


def test_after_three_attempts_it_says_what_the_registry_answered(registry: MavenRegistry, tmp_path: Path) -> None:
    registry.faults[JAR] = [503] * 3
    with pytest.raises(SetupError, match=r"the Maven registry \(127\.0\.0\.1:\d+\) answered '503 Service Unavailable'"):
        fetch(registry, tmp_path)
    assert registry.asked.count((JAR, None)) == 3


def test_a_file_that_the_registry_lacks_is_named_and_asked_for_once(registry: MavenRegistry, tmp_path: Path) -> None:
    wanted = registry.lock()
    del registry.files[JAR]
    with pytest.raises(SetupError, match=r"the Maven registry \(\S+\) has no org\.example:tool:1\.") as caught:
        download("Tool 1", wanted, tmp_path, progress=silent)
    assert "unset it to use Maven Central" in caught.value.hint
    assert registry.asked.count((JAR, None)) == 1


def test_a_wrong_password_is_not_tried_again_and_says_where_it_is_set(registry: MavenRegistry, tmp_path: Path) -> None:
    registry.faults[JAR] = [401]
    with pytest.raises(SetupError, match="answered '401 Unauthorized'") as caught:
        fetch(registry, tmp_path)
    assert "PENSTOCK_MAVEN_URL=https://name:password@host" in caught.value.hint


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"evil" * 100_000, "its SHA-256 is"),
        (b"tool" * 100_000 + b"!", "its SHA-256 is"),
        (b"tool", "4 of 400,000 bytes"),
    ],
)
def test_other_content_than_the_lock_lists_is_refused(
    registry: MavenRegistry, tmp_path: Path, content: bytes, reason: str
) -> None:
    wanted = registry.lock()
    registry.files[JAR] = content
    with pytest.raises(SetupError, match=reason):
        download("Tool 1", wanted, tmp_path, progress=silent)
    assert not (tmp_path / JAR).exists()


def test_a_name_and_a_password_of_a_mirror_are_sent_and_never_shown(
    registry: MavenRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_MAVEN_URL", registry.url.replace("//", "//me:s%40cret@"))
    fetch(registry, tmp_path)
    sent = base64.b64encode(b"me:s@cret").decode()
    assert {headers["Authorization"] for headers in registry.headers} == {f"Basic {sent}"}
    monkeypatch.setenv("PENSTOCK_MAVEN_URL", "http://me:secret@127.0.0.1:9/")
    with pytest.raises(SetupError) as caught:
        fetch(registry, tmp_path)
    assert "127.0.0.1:9: Connection refused" in caught.value.problem
    assert "secret" not in str(caught.value)


def test_a_folder_can_be_the_mirror(registry: MavenRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror, target = tmp_path / "a mirror", tmp_path / "target"
    fetch(registry, mirror)
    registry.asked.clear()
    monkeypatch.setenv("PENSTOCK_MAVEN_URL", mirror.as_uri())
    assert fetch(registry, target) == registry.files
    assert registry.asked == []
    (mirror / JAR).unlink()
    with pytest.raises(SetupError, match=r"has no org\.example:tool:1"):
        fetch(registry, target)


def test_a_proxy_of_the_environment_is_used(
    registry: MavenRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_MAVEN_URL", "http://registry.invalid/maven2")
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{registry.port}")
    with pytest.raises(SetupError, match=r"has no org\.example"):  # a request to a proxy has the whole URL
        fetch(registry, tmp_path)
    assert registry.asked[0][0].startswith("http://registry.invalid/maven2/")
    monkeypatch.setenv("http_proxy", "http://me:secret@127.0.0.1:9")
    with pytest.raises(SetupError) as caught:
        fetch(registry, tmp_path)
    assert "registry.invalid through the proxy 127.0.0.1:9: Connection refused" in caught.value.problem


def test_no_proxy_is_respected(registry: MavenRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert fetch(registry, tmp_path) == registry.files


def test_a_mirror_that_is_no_address_is_refused(
    registry: MavenRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_MAVEN_URL", "mirror.example")
    with pytest.raises(ConfigError, match="PENSTOCK_MAVEN_URL is not an address"):
        fetch(registry, tmp_path)


def test_an_interrupt_ends_it_while_the_registry_is_silent(registry: MavenRegistry, tmp_path: Path) -> None:
    registry.silent = {JAR, LIBRARY}

    def interrupt(text: str, **_: object) -> None:
        assert registry.heard.wait(120)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(registry, tmp_path, interrupt)
    assert list(tmp_path.rglob("*.jar")) == []
    registry.closing.set()
    wait_for(
        lambda: not any(thread.name == "penstock-download" for thread in threading.enumerate()), "the workers to end"
    )


def test_a_download_has_a_limit(registry: MavenRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.silent = {JAR}
    monkeypatch.setattr(downloading, "DOWNLOAD_SECONDS", 0.01)
    with pytest.raises(SetupError, match="took longer than"):
        fetch(registry, tmp_path)


def test_a_disk_that_cannot_be_written_is_no_matter_of_the_network(registry: MavenRegistry, tmp_path: Path) -> None:
    (tmp_path / "org").touch()
    with pytest.raises((FileExistsError, NotADirectoryError)):
        fetch(registry, tmp_path)


def test_nothing_is_asked_for_when_the_list_is_empty(registry: MavenRegistry, tmp_path: Path) -> None:
    download("Nothing", [], tmp_path, progress=silent)
    assert registry.asked == []
