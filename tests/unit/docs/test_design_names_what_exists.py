"""DESIGN.md stays short, and DESIGN.md and docs/internals name only files, folders and tests that exist."""

import re
from pathlib import Path

import pytest

from docs_check.environment import ROOT

PAGES = [ROOT / "DESIGN.md", *sorted((ROOT / "docs" / "internals").glob("*.md"))]
INTERNALS = [page for page in PAGES if page.name not in {"DESIGN.md", "README.md"}]
PACKAGE = ROOT / "src" / "penstock"
# Folders of the repository that pages may name, and packages of Penstock, which pages name without src/penstock.
_REPOSITORY = ("src", "tests", "benchmarks", "examples", "deploy", "scripts", "requirements")
_PACKAGES = tuple(sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()))
_PATH = re.compile(rf"(?<![\w./-])(?:{'|'.join((*_REPOSITORY, *_PACKAGES))})/[\w./-]*\w")
_MODULE = re.compile(r"`((?!__)\w+\.py)`")
_LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
_MOST_LINES = 300
_MOST_COLUMNS = 120


def named_paths(text: str) -> set[str]:
    return set(_PATH.findall(text))


def exists(path: str) -> bool:
    return (ROOT / path).exists() or (PACKAGE / path).exists()


def short(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=short)
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    text = page.read_text("utf-8")
    assert sorted(path for path in named_paths(text) if not exists(path)) == []
    assert sorted(link for link in _LINK.findall(text) if not (page.parent / link).exists()) == []
    # A module without its folder could not be checked.
    assert _MODULE.findall(text) == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("`engine/fetch/fetcher.py`, `tests/unit/docs` and src/penstock/core", []),
        ("`engine/fetch/relief.py`", ["engine/fetch/relief.py"]),
        ("see tests/unit/test_gone.py.", ["tests/unit/test_gone.py"]),
        ("`librdkafka/engine/x.py` is not a path of this repository", []),
    ],
)
def test_the_check_finds_what_is_missing(text: str, missing: list[str]) -> None:
    assert [path for path in named_paths(text) if not exists(path)] == missing


def test_the_architecture_is_one_short_page() -> None:
    lines = (ROOT / "DESIGN.md").read_text("utf-8").splitlines()
    assert len(lines) <= _MOST_LINES
    assert [number for number, line in enumerate(lines, 1) if len(line) > _MOST_COLUMNS] == []


@pytest.mark.parametrize("page", INTERNALS, ids=short)
def test_every_note_says_which_test_covers_it(page: Path) -> None:
    _, *notes = re.split(r"^#+ ", page.read_text("utf-8"), flags=re.MULTILINE)
    assert [note.partition("\n")[0] for note in notes[1:] if note.count("\nCovered by: ") != 1] == []


def test_the_list_of_internals_is_complete() -> None:
    listed = _LINK.findall((ROOT / "docs" / "internals" / "README.md").read_text("utf-8"))
    assert sorted(link for link in listed if "/" not in link) == sorted(page.name for page in INTERNALS)
