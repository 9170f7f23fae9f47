"""Fixtures for the tests of commands for operators."""

from collections.abc import Iterator

import pytest

from cli_helpers import Penstock
from group_tool import GroupTools, group_tools


@pytest.fixture(scope="package")
def kafkas_tools(brokers: str) -> Iterator[GroupTools]:
    """Kafka's own tool, in one JVM for all tests of this folder."""
    with group_tools(brokers) as started:
        yield started


@pytest.fixture
def penstock(brokers: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Penstock:
    return Penstock(brokers, monkeypatch, capsys)
