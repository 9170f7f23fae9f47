"""The environments in which tests follow the pages."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from docs_check.environment import build_wheel
from docs_check.linked import LinkedEnvironment, unpack
from docs_check.reader import Reader
from docs_check.real import RealEnvironment, find_python

RecordProperty = Callable[[str, object], None]


@pytest.fixture(scope="package")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def readme_reader(
    request: pytest.FixtureRequest, tmp_path: Path, wheel: Path, record_property: RecordProperty
) -> Iterator[Reader]:
    """A reader in a folder with only the wheel, which the README installs."""
    environment = RealEnvironment(tmp_path / "environment", find_python())
    environment.make()
    record_property("environment", environment.description)
    reader = Reader(request.node.name, tmp_path, environment)
    shutil.copy(wheel, reader.folder)
    yield reader
    reader.leave()
    environment.remove()


@pytest.fixture(scope="package")
def reader_of_all(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """One reader for all pages, with the wheel installed: by pip for `make docs-check`, otherwise by links."""
    environment = request.getfixturevalue("installed" if os.environ.get("DOCS_INSTALL") else "linked")
    reader = Reader("docs", tmp_path_factory.mktemp("docs"), environment)
    yield reader
    reader.leave()


@pytest.fixture
def docs_reader(request: pytest.FixtureRequest, reader_of_all: Reader, record_property: RecordProperty) -> Reader:
    """The reader, in an empty folder, with nothing but the wheel and, if it runs already, an empty Kafka."""
    reader_of_all.begin(re.sub(r"[^\w.-]+", "-", request.node.name))
    if reader_of_all.environment.description:
        record_property("environment", reader_of_all.environment.description)
    return reader_of_all


@pytest.fixture(scope="package")
def original(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> RealEnvironment:
    environment = RealEnvironment(tmp_path_factory.mktemp("installed") / "environment", find_python())
    environment.make()
    environment.install(wheel)
    environment.keep()
    return environment


@pytest.fixture(scope="package")
def installed(original: RealEnvironment) -> Iterator[RealEnvironment]:
    """The wheel and what it requires, installed by pip."""
    original.copy()
    yield original
    original.remove()


@pytest.fixture(scope="package")
def unpacked(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    unpack(wheel, folder)
    return folder


@pytest.fixture(scope="package")
def linked(tmp_path_factory: pytest.TempPathFactory, unpacked: Path) -> Iterator[LinkedEnvironment]:
    """The same by links, which is quick."""
    environment = LinkedEnvironment(tmp_path_factory.mktemp("linked") / "environment")
    environment.make(unpacked)
    yield environment
    environment.remove()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report which environments were used."""
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.getreports(outcome)]
    for used in dict.fromkeys(str(value) for report in reports for _, value in report.user_properties):
        terminalreporter.write_line(f"Followed with {used}")
