import importlib.util
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from penstock.errors import ConfigError, SetupError
from penstock.jvm.coordinates import Artifact
from penstock.jvm.ivy import Request, pyspark_jars, render_settings, render_wish

CLASSIFIER = "{http://ant.apache.org/ivy/maven}classifier"


def resolver(settings: str) -> dict[str, str]:
    found = ET.fromstring(settings).find("resolvers/ibiblio")
    assert found is not None
    return found.attrib


def test_no_host_is_named_and_no_cache_of_the_user_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_MAVEN_URL", raising=False)
    settings = render_settings(Path("/some/cache"), exact=False)
    assert "root" not in resolver(settings)
    caches = ET.fromstring(settings).find("caches")
    assert caches is not None
    assert caches.attrib == {"defaultCacheDir": "/some/cache"}


def test_a_mirror_is_respected_and_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_MAVEN_URL", 'https://mirror.example/a&b"c')
    assert resolver(render_settings(Path("c"), exact=False))["root"] == 'https://mirror.example/a&b"c/'


def test_a_mirror_that_is_no_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_MAVEN_URL", "mirror.example")
    with pytest.raises(ConfigError, match="PENSTOCK_MAVEN_URL"):
        render_settings(Path("c"), exact=False)


def test_an_exact_request_reads_no_poms_and_follows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_MAVEN_URL", raising=False)
    assert resolver(render_settings(Path("c"), exact=True))["usepoms"] == "false"
    wish = render_wish(Request("X", (Artifact("o", "n", "1", "all", "tar.gz"),), exact=True))
    dependency = ET.fromstring(wish).find("dependencies/dependency")
    assert dependency is not None
    assert dependency.attrib["transitive"] == "false"
    artifact = dependency.find("artifact")
    assert artifact is not None
    assert (artifact.attrib["ext"], artifact.attrib[CLASSIFIER]) == ("tar.gz", "all")


def test_other_requests_follow_dependencies() -> None:
    wish = render_wish(Request("X", (Artifact("o", "n", "1"),), exact=False))
    dependency = ET.fromstring(wish).find("dependencies/dependency")
    assert dependency is not None
    assert dependency.attrib == {"org": "o", "name": "n", "rev": "1", "conf": "default->default"}


def test_missing_pyspark_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(SetupError) as caught:
        pyspark_jars()
    assert "penstock[spark]" in caught.value.hint
