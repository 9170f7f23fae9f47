"""docs/*.md work as printed: each page is followed from top to bottom with only the wheel and its requirements."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from docs_check.environment import DOCS, ROOT, page_id
from docs_check.pages import Command, File, Fragment, NotRun, steps_of
from docs_check.reader import Reader

pytestmark = pytest.mark.long

PAGES = [ROOT / "README.md", *DOCS]
# The number of blocks that are not run; each has its reason above it. Raise it only for things that no CI has.
MOST_NOT_RUN = 12


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    "page",
    [page for page in DOCS if any(isinstance(step, Command) for step in steps_of(page))],
    ids=page_id,
)
def test_a_page_works_from_top_to_bottom(docs_reader: Reader, page: Path) -> None:
    docs_reader.follow(page)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
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
