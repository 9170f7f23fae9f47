"""The Python environment in which pages install the wheel."""

import subprocess
import sys
from pathlib import Path
from typing import Protocol

ROOT = Path(__file__).parents[2]
# The pages for users; those in docs/internals are for people who change Penstock.
DOCS = [page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "internals"]
EXAMPLES = sorted((ROOT / "examples").glob("*/README.md"))
# tests/integration/pipelines/test_examples.py follows these, in a Spark that already runs.
SPARK_EXAMPLES = [page for page in EXAMPLES if "--engine spark --" in page.read_text("utf-8")]


def page_id(page: Path) -> str:
    """The name of a page in the ids of tests, such as ``tutorial/1-consume.md``."""
    return page.relative_to(ROOT).as_posix().removeprefix("docs/")


class Environment(Protocol):
    """A virtual environment with only the wheel and its requirements, or with only pip."""

    description: str

    @property
    def scripts(self) -> Path:
        """The folder of ``python``, ``pip`` and ``penstock``."""

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables that commands of a page need."""

    def renew(self) -> None:
        """Remove what pages have installed."""


def build_wheel(folder: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("penstock-*.whl")
    return wheel
