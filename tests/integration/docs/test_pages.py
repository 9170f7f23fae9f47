"""docs/**/*.md work as printed: each page is followed from top to bottom with only the wheel and its requirements."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from docs_check.environment import DOCS, ROOT, page_id
from docs_check.pages import Command, File, Fragment, NotRun, steps_of
from docs_check.reader import Reader

pytestmark = pytest.mark.long

PAGES = [ROOT / "README.md", *DOCS]
# The guides, such as docs/tutorial: one reader follows all pages of a folder, on one Kafka.
FOLDERS = sorted({page.parent.name for page in DOCS if page.parent.name != "docs"})
# Its pages build one app, so they share one folder. All others begin in an empty one.
CONTINUED = "tutorial"
# The number of blocks that are not run; each has its reason above it. Raise it only for things that no CI has.
MOST_NOT_RUN = 16
# How the reason begins for code of other libraries, which stands beside ours for comparison.
OTHERS = "code of "


def pages_of(folder: str) -> list[Path]:
    return [page for page in DOCS if page.parent.name == folder]


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    "page",
    [page for page in pages_of("docs") if any(isinstance(step, Command) for step in steps_of(page))],
    ids=page_id,
)
def test_a_page_works_from_top_to_bottom(docs_reader: Reader, page: Path) -> None:
    docs_reader.follow(page)


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("folder", FOLDERS)
def test_the_pages_of_a_folder_work_one_after_the_other(docs_reader: Reader, folder: str) -> None:
    for page in pages_of(folder):
        if folder != CONTINUED:
            docs_reader.begin(page.stem)
        docs_reader.follow(page)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_pieces_of_code_are_python(page: Path) -> None:
    for step in steps_of(page):
        if isinstance(step, File) and step.name.endswith(".py"):
            ast.parse(step.text)
        elif isinstance(step, Fragment):
            ast.parse(step.whole, f"{page.name} line {step.line}")


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_piece_of_code_in_a_guide_is_a_file_that_is_run_or_says_why_not(folder: str) -> None:
    assert [
        f"{page_id(page)}, line {step.line}"
        for page in pages_of(folder)
        for step, before in zip(steps_of(page), [None, *steps_of(page)], strict=False)
        if isinstance(step, Fragment) and not isinstance(before, NotRun)
    ] == []


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    kinds = Counter(type(step).__name__ for page in PAGES for step in steps_of(page))
    reasons = [step.reason for page in PAGES for step in steps_of(page) if isinstance(step, NotRun)]
    ours = [reason for reason in reasons if not reason.startswith(OTHERS)]
    assert kinds["Command"] >= 30, kinds
    assert len(ours) <= MOST_NOT_RUN, ours
