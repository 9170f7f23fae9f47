"""Ivy for packages that no lock lists, through a pretended Java."""

import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from penstock.errors import SetupError
from penstock.jvm.coordinates import Artifact
from penstock.jvm.ivy import render_settings, render_wish, resolve_by_ivy
from penstock.jvm.progress import silent

TOOL = (Artifact("org.example", "tool", "1"),)
JAR = "org/example/tool/1/tool-1.jar"
UNREACHABLE = "\tHttpClientHandler: Connection refused url=http://mirror.example/x\n"

FAKE_JAVA = """#!{python}
import pathlib, sys

here = pathlib.Path({here!r})
if sys.argv[1:] == ["-version"]:
    sys.stderr.write('openjdk version "17.0.15" 2025-04-15')
    sys.exit(0)
with (here / "runs").open("a") as runs:
    runs.write(" ".join(sys.argv[1:]) + "\\n")
answers = sorted(here.glob("answer-*"))
if answers:
    sys.stdout.write(answers[0].read_text())
    answers[0].unlink()
    sys.exit(1)
jar = pathlib.Path(sys.argv[sys.argv.index("-retrieve") + 1].split("/[")[0], {jar!r})
jar.parent.mkdir(parents=True)
jar.write_bytes(b"tool")
"""


class Heard:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, text: str, **_: object) -> None:
        self.lines.append(text)


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that says what the pretended Java answers."""
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text(FAKE_JAVA.format(python=sys.executable, here=str(tmp_path), jar=JAR))
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    return tmp_path


def runs(java: Path) -> list[str]:
    return (java / "runs").read_text().splitlines()


def fetch(java: Path, progress: Heard | None = None) -> bytes:
    work, target = java / "work", java / "target"
    work.mkdir()
    target.mkdir()
    resolve_by_ivy("Tool 1", TOOL, work=work, target=target, progress=progress or silent)
    return (target / JAR).read_bytes()


def test_a_passing_failure_is_tried_again(java: Path) -> None:
    for number in range(2):
        (java / f"answer-{number}").write_text(UNREACHABLE)
    heard = Heard()
    assert fetch(java, heard) == b"tool"
    assert heard.lines == [
        "The download broke off, trying again (2 of 3)",
        "The download broke off, trying again (3 of 3)",
    ]


def test_after_three_attempts_it_gives_up(java: Path) -> None:
    for number in range(3):
        (java / f"answer-{number}").write_text(UNREACHABLE)
    with pytest.raises(SetupError, match="out of reach"):
        fetch(java)
    assert len(runs(java)) == 3


def test_an_unknown_version_is_not_tried_again(java: Path) -> None:
    (java / "answer-0").write_text("\t\t:: org.example#tool;1: not found\n")
    with pytest.raises(SetupError, match=r"has no org\.example:tool:1"):
        fetch(java)
    assert len(runs(java)) == 1


def test_the_proxy_of_the_environment_is_handed_over(java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_MAVEN_URL", "https://mirror.example")
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "other.example")
    fetch(java)
    assert "-Dhttps.proxyHost=proxy.example -Dhttps.proxyPort=3128" in runs(java)[0]


def test_no_proxy_is_respected(java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_MAVEN_URL", "https://mirror.example")
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "mirror.example")
    fetch(java)
    assert "proxyHost" not in runs(java)[0]


def test_no_cache_of_the_user_is_used() -> None:
    caches = ET.fromstring(render_settings(Path("/some/cache"))).find("caches")
    assert caches is not None
    assert caches.attrib == {"defaultCacheDir": "/some/cache"}


def test_a_mirror_is_respected_and_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_MAVEN_URL", 'https://mirror.example/a&b"c')
    resolver = ET.fromstring(render_settings(Path("c"))).find("resolvers/ibiblio")
    assert resolver is not None
    assert resolver.attrib["root"] == 'https://mirror.example/a&b"c/'


def test_dependencies_are_followed() -> None:
    dependency = ET.fromstring(render_wish([Artifact("o", "n", "1")])).find("dependencies/dependency")
    assert dependency is not None
    assert dependency.attrib == {"org": "o", "name": "n", "rev": "1", "conf": "default->default"}
