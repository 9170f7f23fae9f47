"""Sets without a lockfile, from a registry on the loopback address: found, refused, and their errors."""

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from maven_registry import MavenRegistry, maven_registry
from penstock.errors import SetupError
from penstock.jvm import maven_connection
from penstock.jvm.coordinates import Artifact, Coordinates
from penstock.jvm.jars import resolve
from penstock.jvm.progress_callback import ProgressCallback, silent
from penstock.paths import jar_cache

TOOL = "org.example:tool:1"
TOOL_JAR = "org/example/tool/1/tool-1.jar"


class Heard:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, text: str, **_: object) -> None:
        if text not in self.lines:
            self.lines.append(text)


@pytest.fixture(autouse=True)
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MavenRegistry]:
    for name in ("http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(maven_connection, "_PAUSE_SECONDS", (0.0, 0.0))
    with maven_registry() as made:
        monkeypatch.setenv("PENSTOCK_MAVEN_URL", made.url)
        yield made


def dependency(coordinate: str, more: str = "") -> str:
    group, name, version = coordinate.split(":")
    stated = f"<version>{version}</version>" if version else ""
    return f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>{stated}{more}</dependency>"


def managing(coordinate: str, more: str = "") -> str:
    return f"<dependencyManagement><dependencies>{dependency(coordinate, more)}</dependencies></dependencyManagement>"


def put(registry: MavenRegistry, path: str, content: bytes) -> None:
    registry.files[path] = content
    registry.files[f"{path}.sha1"] = hashlib.sha1(content).hexdigest().encode()


def publish(registry: MavenRegistry, coordinate: str, *needs: str, more: str = "", jar: bool = True) -> None:
    """Put a module into the registry: its pom, its jar and their checksums."""
    artifact = Artifact.parse(coordinate)
    pom = f"""<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="urn:pom">
  <groupId>{artifact.organisation}</groupId><artifactId>{artifact.name}</artifactId><version>{artifact.version}</version>
  {more}
  <dependencies>{"".join(needs)}</dependencies>
</project>"""
    put(registry, artifact.path().removesuffix("jar") + "pom", pom.encode())
    if jar:
        put(registry, artifact.path(), str(artifact).encode())


def fetch(*coordinates: str, progress: ProgressCallback = silent) -> list[str]:
    """Return what the jars of the set hold: each its own coordinate."""
    artifacts = tuple(Artifact.parse(each) for each in coordinates or (TOOL,))
    return [path.read_text() for path in resolve(Coordinates("Tool 1", artifacts), progress=progress)]


def test_all_that_a_module_needs_is_fetched_and_no_more(registry: MavenRegistry, tmp_path: Path) -> None:
    publish(
        registry,
        TOOL,
        dependency("org.example:near:1"),
        dependency("org.example:for-tests:1", "<scope>test</scope>"),
        dependency("org.example:of-the-server:1", "<scope>provided</scope>"),
        dependency("org.example:perhaps:1", "<optional>true</optional>"),
    )
    publish(
        registry,
        "org.example:near:1",
        dependency("org.example:far:1", "<scope>runtime</scope>"),
        dependency(
            "org.example:other:1",
            "<exclusions><exclusion><groupId>org.example</groupId><artifactId>unwanted</artifactId></exclusion></exclusions>",
        ),
    )
    publish(registry, "org.example:far:1")
    publish(registry, "org.example:other:1", dependency("org.example:unwanted:1"))
    heard = Heard()
    wanted = ["org.example:far:1", "org.example:near:1", "org.example:other:1", TOOL]
    assert fetch(progress=heard) == wanted
    assert heard.lines == ["Looking up Tool 1", "Fetching Tool 1"]
    registry.asked.clear()
    assert fetch() == wanted
    assert registry.asked == [], "it is kept"
    assert not (tmp_path / "home").exists(), "neither ~/.m2 nor another cache of the user is touched"
    assert [path.name for path in jar_cache().glob("draft-*")] == []


def test_the_nearer_of_two_versions_counts(registry: MavenRegistry) -> None:
    publish(registry, TOOL, dependency("org.example:near:1"), dependency("org.example:library:1"))
    publish(registry, "org.example:near:1", dependency("org.example:library:2"))
    publish(registry, "org.example:library:1")
    assert fetch() == ["org.example:library:1", "org.example:near:1", TOOL]


def test_versions_come_from_parents_properties_and_boms(registry: MavenRegistry) -> None:
    publish(
        registry,
        "org.example:parent:3",
        more=f"""<packaging>pom</packaging><properties><library>7</library></properties>
        {managing("org.example:bom:5", "<type>pom</type><scope>import</scope>")}""",
        jar=False,
    )
    publish(registry, "org.example:bom:5", more=managing("org.example:managed:9"), jar=False)
    publish(
        registry,
        TOOL,
        dependency("org.example:library:${library}"),
        dependency("org.example:managed:"),
        dependency("org.example:sibling:${project.parent.version}"),
        dependency("org.example:twin:${pom.version}"),
        more="<parent><groupId>org.example</groupId><artifactId>parent</artifactId><version>3</version></parent>",
    )
    for each in ("library:7", "managed:9", "sibling:3", "twin:1"):
        publish(registry, f"org.example:{each}")
    assert fetch() == [
        "org.example:library:7", "org.example:managed:9", "org.example:sibling:3", TOOL, "org.example:twin:1",
    ]  # fmt: skip


def test_managed_versions_of_one_artifact_do_not_apply_to_another(registry: MavenRegistry) -> None:
    publish(registry, "org.example:logging:1", more=managing("org.example:library:1"))
    publish(registry, TOOL, dependency("org.example:library:2"))
    publish(registry, "org.example:library:2")
    assert "org.example:library:2" in fetch(TOOL, "org.example:logging:1")


@pytest.mark.parametrize(
    ("asked", "chosen"), [("[1]", "1"), ("[1,3)", "2.10"), ("[1,)", "3"), ("(,2.9)", "2.9-beta"), ("[3],[9,)", "3")]
)
def test_a_range_is_answered_by_the_newest_version_in_it(registry: MavenRegistry, asked: str, chosen: str) -> None:
    versions = "".join(f"<version>{each}</version>" for each in ("1", "2.9-beta", "2.10", "3"))
    metadata = f"<metadata><versioning><versions>{versions}</versions></versioning></metadata>"
    put(registry, "org/example/library/maven-metadata.xml", metadata.encode())
    publish(registry, TOOL, dependency(f"org.example:library:{asked}"))
    publish(registry, f"org.example:library:{chosen}")
    assert fetch() == [f"org.example:library:{chosen}", TOOL]


def test_a_range_that_no_version_is_in_names_the_module(registry: MavenRegistry) -> None:
    publish(registry, TOOL, dependency("org.example:library:[1,2)"))
    with pytest.raises(SetupError, match=r"has no org\.example:library:\[1,2\)\."):
        fetch()


def test_a_module_that_has_moved_is_fetched_from_where_it_is_now(registry: MavenRegistry) -> None:
    moved = """<distributionManagement><relocation>
      <groupId>com.example</groupId><artifactId>tool-j</artifactId></relocation></distributionManagement>"""
    publish(registry, TOOL, more=moved, jar=False)
    publish(registry, "com.example:tool-j:1", dependency("org.example:user:1"))
    publish(registry, "org.example:user:1", dependency(TOOL))
    assert fetch() == ["com.example:tool-j:1", "org.example:user:1"]


def test_a_module_that_only_brings_others_has_no_jar(registry: MavenRegistry) -> None:
    publish(registry, TOOL, dependency("org.example:library:1"), more="<packaging>pom</packaging>", jar=False)
    publish(registry, "org.example:library:1")
    assert fetch() == ["org.example:library:1"]


def test_a_jar_without_a_pom_needs_nothing(registry: MavenRegistry) -> None:
    publish(registry, TOOL, dependency("org.example:old:1"))
    put(registry, "org/example/old/1/old-1.jar", b"org.example:old:1")
    assert fetch() == ["org.example:old:1", TOOL]


def test_a_snapshot_is_found_under_its_time_stamp(registry: MavenRegistry) -> None:
    publish(registry, "org.example:tool:1-SNAPSHOT")
    for path in [each for each in registry.files if "tool-1-SNAPSHOT" in each]:
        registry.files[path.replace("tool-1-SNAPSHOT", "tool-1-20260101.120000-4")] = registry.files.pop(path)
    snapshot = "<snapshot><timestamp>20260101.120000</timestamp><buildNumber>4</buildNumber></snapshot>"
    metadata = f"<metadata><version>1-SNAPSHOT</version><versioning>{snapshot}</versioning></metadata>"
    put(registry, "org/example/tool/1-SNAPSHOT/maven-metadata.xml", metadata.encode())
    assert fetch("org.example:tool:1-SNAPSHOT") == ["org.example:tool:1-SNAPSHOT"]


@pytest.mark.parametrize("missing", [TOOL, "org.example:library:1", "org.example:parent:3"])
def test_a_coordinate_that_the_registry_lacks_is_named(registry: MavenRegistry, missing: str) -> None:
    parent = "<parent><groupId>org.example</groupId><artifactId>parent</artifactId><version>3</version></parent>"
    if missing != TOOL:
        publish(registry, TOOL, dependency("org.example:library:1"))
    if missing != "org.example:library:1":
        publish(registry, "org.example:library:1", more=parent)
    with pytest.raises(SetupError, match=rf"the Maven registry \(127\.0\.0\.1:\d+\) has no {missing}\.") as caught:
        fetch()
    assert "unset it to use Maven Central" in caught.value.hint
    assert [path.name for path in jar_cache().iterdir()] == ["lock"]


def test_a_pom_without_its_jar_is_named(registry: MavenRegistry) -> None:
    publish(registry, TOOL, jar=False)
    with pytest.raises(SetupError, match=r"has no org\.example:tool:1\."):
        fetch()


@pytest.mark.parametrize("suffix", ["jar", "pom"])
def test_a_file_that_differs_from_the_checksum_of_the_registry_is_refused(registry: MavenRegistry, suffix: str) -> None:
    publish(registry, TOOL)
    registry.files[TOOL_JAR.replace(".jar", f".{suffix}")] += b" "
    with pytest.raises(SetupError, match=r"tool\S+ arrived damaged \(its SHA-1 is [0-9a-f]{40}, not"):
        fetch()
    assert [path.name for path in jar_cache().iterdir()] == ["lock"]


def test_a_checksum_may_stand_beside_a_name_or_be_missing(registry: MavenRegistry) -> None:
    publish(registry, TOOL, dependency("org.example:library:1"))
    publish(registry, "org.example:library:1")
    registry.files[f"{TOOL_JAR}.sha1"] = registry.files[f"{TOOL_JAR}.sha1"].upper() + b"  tool-1.jar\n"
    del registry.files["org/example/library/1/library-1.jar.sha1"]
    assert fetch() == ["org.example:library:1", TOOL]
    registry.files[f"{TOOL_JAR}.sha1"] = b"<html>Welcome</html>"
    with pytest.raises(SetupError, match="the file with its SHA-1 holds none"):
        fetch(TOOL, "org.example:library:1")


def test_downloads_that_break_off_are_tried_again(registry: MavenRegistry) -> None:
    publish(registry, TOOL)
    del registry.files[f"{TOOL_JAR}.sha1"]  # only its length shows that the jar is incomplete
    registry.faults = {TOOL_JAR: [0.5, 503], TOOL_JAR.replace("jar", "pom"): [0.5, 503]}
    heard = Heard()
    assert fetch(progress=heard) == [TOOL]
    assert (TOOL_JAR, f"bytes={len(TOOL) // 2}-") in registry.asked
    assert sum(line.startswith("Trying again (2 of 3)") for line in heard.lines) == 2, "for the pom and for the jar"


def test_a_failure_on_the_way_is_not_taken_for_a_module_that_needs_nothing(registry: MavenRegistry) -> None:
    publish(registry, TOOL, dependency("org.example:library:1"))
    publish(registry, "org.example:library:1")
    registry.faults["org/example/library/1/library-1.pom"] = [500] * 3
    with pytest.raises(SetupError, match="answered '500 Internal Server Error'"):
        fetch()


@pytest.mark.parametrize("more", ["", "<broken>"])
def test_a_pom_that_cannot_be_used_is_an_error(registry: MavenRegistry, more: str) -> None:
    publish(registry, TOOL, dependency("org.example:library:1"))
    publish(registry, "org.example:library:1", dependency("org.example:without-version:"), more=more)
    with pytest.raises(SetupError, match="Cannot fetch Tool 1: its dependencies cannot be resolved") as caught:
        fetch()
    assert caught.value.hint


def test_an_unreachable_registry_is_reported_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_MAVEN_URL", "http://me:secret@127.0.0.1:9/")
    with pytest.raises(SetupError, match=r"cannot be reached \(127\.0\.0\.1:9: Connection refused\)") as caught:
        fetch()
    assert "secret" not in str(caught.value)


def test_a_name_and_a_password_of_a_mirror_are_sent_with_every_request(
    registry: MavenRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(registry, TOOL, dependency("org.example:library:1"))
    publish(registry, "org.example:library:1")
    monkeypatch.setenv("PENSTOCK_MAVEN_URL", registry.url.replace("//", "//me:s%40cret@"))
    assert fetch() == ["org.example:library:1", TOOL]
    sent = base64.b64encode(b"me:s@cret").decode()
    assert {headers.get("Authorization") for headers in registry.headers} == {f"Basic {sent}"}


def test_a_folder_can_be_the_mirror(registry: MavenRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(registry, TOOL, dependency("org.example:library:1"))
    publish(registry, "org.example:library:1")
    for path, content in registry.files.items():
        file = tmp_path / "a mirror" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    monkeypatch.setenv("PENSTOCK_MAVEN_URL", (tmp_path / "a mirror").as_uri())
    assert fetch() == ["org.example:library:1", TOOL]
    assert registry.asked == []
    with pytest.raises(SetupError, match=r"has no org\.example:tool:2"):
        fetch("org.example:tool:2")


def test_every_request_goes_through_the_proxy_of_the_environment(
    registry: MavenRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(registry, TOOL)
    registry.files = {f"http://registry.invalid/maven2/{path}": content for path, content in registry.files.items()}
    monkeypatch.setenv("PENSTOCK_MAVEN_URL", "http://registry.invalid/maven2")
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{registry.port}")
    assert fetch() == [TOOL]
