"""One cluster of three brokers for all tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from penstock.devkit import Embedded, UpOptions


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.together("three brokers"))


@pytest.fixture(scope="package")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("three")
    yield folder
    embedded = Embedded(folder)
    pids = [server.pid for server in (*embedded.status().brokers, embedded.status().registry) if server and server.pid]
    embedded.down()
    assert not any(psutil.pid_exists(pid) for pid in pids)


@pytest.fixture
def three(home: Path) -> Embedded:
    """All three brokers, running. Tests may leave some of them dead."""
    embedded = Embedded(home)
    embedded.up(UpOptions(brokers=3, port=None if embedded.bootstrap() else 0))
    return embedded
