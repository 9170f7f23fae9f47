"""The default Maven registry."""

import pytest
from jgo.constants import MAVEN_CENTRAL_URL

from penstock.jvm.maven_registry import find_registry


def test_without_a_mirror_it_is_maven_central(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_MAVEN_URL", raising=False)
    assert find_registry().root == f"{MAVEN_CENTRAL_URL}/"
    assert MAVEN_CENTRAL_URL.startswith("https://")
