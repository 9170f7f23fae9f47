"""README.md and docs/*.md work as written: each page is followed from top to bottom with only the wheel installed."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs_check.environment import ROOT, Environment, build_wheel
from docs_check.pages import Command, File, Fragment, NotRun, steps_of
from docs_check.reader import Reader

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# Blocks that are printed and not run, each with its reason above it. Raise it only for what no CI can have.
MOST_NOT_RUN = 12


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def reader(request: pytest.FixtureRequest, tmp_path: Path, wheel: Path) -> Iterator[Reader]:
    environment = Environment(tmp_path / "environment")
    environment.make(wheel)
    reader = Reader(request.param.name, tmp_path, environment)
    yield reader
    reader.leave()
    environment.remove()


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    ("reader", "page"),
    [(page, page) for page in PAGES if any(isinstance(step, Command) for step in steps_of(page))],
    indirect=["reader"],
    ids=lambda value: value.name,
)
def test_a_page_works_from_top_to_bottom(reader: Reader, page: Path) -> None:
    for step in steps_of(page):
        match step:
            case File(name, text):
                reader.save(name, text)
            case Command():
                reader.type(step)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pieces_of_code_are_python(page: Path) -> None:
    for step in steps_of(page):
        if isinstance(step, File) and step.name.endswith(".py"):
            ast.parse(step.text)
        elif isinstance(step, Fragment):
            ast.parse(step.whole, f"{page.name} line {step.line}")


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    kinds = Counter(type(step).__name__ for page in PAGES for step in steps_of(page))
    reasons = [step.reason for page in PAGES for step in steps_of(page) if isinstance(step, NotRun)]
    assert kinds["Command"] >= 30, kinds
    assert len(reasons) <= MOST_NOT_RUN, reasons
