"""docs/**/*.md and examples/*/README.md work as printed, from top to bottom, with only the wheel and its requirements.

All pages share one Kafka, which is emptied between them.
"""

import ast
import shutil
from collections import Counter
from pathlib import Path

import pytest

from docs_check.environment import DOCS, EXAMPLES, ROOT, SPARK_EXAMPLES, page_id
from docs_check.pages import Command, File, Fragment, NotRun, steps_of
from docs_check.reader import Reader

pytestmark = pytest.mark.long

PAGES = [ROOT / "README.md", *DOCS, *EXAMPLES]
# What a newcomer follows in this order, in one folder: the app and the Kafka of a page are those of the page before.
COURSE = [ROOT / "docs" / "start.md", *(page for page in DOCS if page.parent.name == "tutorial")]
# In their code no piece is without a file.
GUIDES = [page for page in DOCS if page.parent.name != "docs" and page not in COURSE]
# The number of blocks that are not run; each has its reason above it. Raise it only for things that no CI has, or for
# a piece of code that needs a broker on a page that has no commands (one each of failures.md and guarantees.md).
MOST_NOT_RUN = 15
# How the reason begins for code of other libraries, which stands beside ours for comparison.
OTHERS = "code of "


def has_commands(page: Path) -> bool:
    return any(isinstance(step, Command) for step in steps_of(page))


@pytest.mark.timeout(3_600)
def test_the_tutorial_works_from_the_start_page_to_its_end(docs_reader: Reader) -> None:
    for page in COURSE:
        docs_reader.follow(page)


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("page", [page for page in DOCS if page not in COURSE and has_commands(page)], ids=page_id)
def test_a_page_works_from_top_to_bottom(docs_reader: Reader, page: Path) -> None:
    docs_reader.follow(page)


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("page", [page for page in EXAMPLES if page not in SPARK_EXAMPLES], ids=page_id)
def test_an_example_works_as_its_page_says(docs_reader: Reader, page: Path) -> None:
    shutil.copytree(page.parent, docs_reader.folder, dirs_exist_ok=True)
    docs_reader.follow(page)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_pieces_of_code_are_python(page: Path) -> None:
    for step in steps_of(page):
        if isinstance(step, File) and step.name.endswith(".py"):
            ast.parse(step.text)
        elif isinstance(step, Fragment):
            ast.parse(step.whole, f"{page.name} line {step.line}")


@pytest.mark.parametrize("page", [*COURSE, *GUIDES], ids=page_id)
def test_every_piece_of_code_is_a_file_that_is_run_or_says_why_not(page: Path) -> None:
    steps = steps_of(page)
    assert [
        f"line {step.line}"
        for step, before in zip(steps, [None, *steps], strict=False)
        if isinstance(step, Fragment) and not isinstance(before, NotRun)
    ] == []


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    kinds = Counter(type(step).__name__ for page in PAGES for step in steps_of(page))
    reasons = [step.reason for page in PAGES for step in steps_of(page) if isinstance(step, NotRun)]
    ours = [reason for reason in reasons if not reason.startswith(OTHERS)]
    assert kinds["Command"] >= 30, kinds
    assert len(ours) <= MOST_NOT_RUN, ours
