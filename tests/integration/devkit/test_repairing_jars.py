"""Kafka's jars from a registry on this machine, which serves the files of the cache."""

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import SetupError
from penstock.jvm.coordinates import KAFKA, Artifact, Coordinates
from penstock.jvm.jars import resolve


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        return


@pytest.fixture(scope="module")
def original() -> Path:
    """The folder of Kafka's jars in the user's cache, downloaded if this is the first run."""
    jar = next(path for path in resolve(KAFKA) if path.name == "kafka-clients-4.3.1.jar")
    return jar.parents[5]


@pytest.fixture
def cache(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A separate cache with a copy of Kafka's jars. It is no link, because the test damages the files."""
    copy = tmp_path / "jars" / original.name
    shutil.copytree(original, copy)
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    return copy


@pytest.fixture
def mirror(original: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    handler = functools.partial(QuietHandler, directory=str(original))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        monkeypatch.setenv("PENSTOCK_MAVEN_URL", f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield
        server.shutdown()
        thread.join()


@pytest.mark.usefixtures("mirror")
def test_a_truncated_jar_is_found_and_its_set_is_fetched_again(original: Path, cache: Path) -> None:
    damaged = next(cache.rglob("kafka-clients-4.3.1.jar"))
    damaged.write_bytes(damaged.read_bytes()[:1000])
    heard: list[str] = []

    files = resolve(KAFKA, progress=lambda text, **_: heard.append(text))

    assert "was damaged on disk" in heard[0]
    assert "Fetching Kafka 4.3.1" in heard
    assert damaged.read_bytes() == next(original.rglob(damaged.name)).read_bytes()
    assert all(path.is_relative_to(cache) for path in files)


@pytest.mark.usefixtures("mirror", "cache")
def test_an_unknown_version_is_named() -> None:
    unknown = Coordinates("Kafka 0", (Artifact("org.apache.kafka", "kafka-clients", "0.0.0"),))
    with pytest.raises(SetupError, match=r"has no org\.apache\.kafka:kafka-clients:0\.0\.0"):
        resolve(unknown)


def test_without_a_network_what_is_there_still_works(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_MAVEN_URL", "http://127.0.0.1:9")
    assert len(resolve(KAFKA)) == 46
    next(cache.rglob("kafka-clients-4.3.1.jar")).unlink()
    with pytest.raises(SetupError, match="cannot be reached") as caught:
        resolve(KAFKA)
    assert "PENSTOCK_MAVEN_URL" in caught.value.hint
    # The damaged set is still refused, and no partial download has replaced it.
    assert sorted(path.name for path in cache.parent.iterdir()) == [cache.name, "lock"]
