"""Every example in examples/ has a README and tests, which pass; docs/testing.md shows the one in examples/testing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import penstock

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
FOLDERS = sorted(path for path in EXAMPLES.iterdir() if path.is_dir() and not path.name.startswith(("_", ".")))
MOST_LINES = 85


def test_their_tests_pass() -> None:
    # In one process. The examples must import the penstock that is tested here.
    paths = [Path(penstock.__file__).parents[1], *FOLDERS]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    done = subprocess.run(command, cwd=EXAMPLES, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_an_example_is_short_and_has_a_page_and_tests(folder: Path) -> None:
    modules = [path for path in folder.glob("*.py") if not path.name.startswith("test_")]
    assert modules
    assert all(len(path.read_text("utf-8").splitlines()) <= MOST_LINES for path in modules)
    assert (folder / "README.md").read_text("utf-8").startswith("# ")
    assert [*folder.glob("test_*.py")]
    assert f"]({folder.name})" in (EXAMPLES / "README.md").read_text("utf-8"), "examples/README.md lists it"


def test_no_two_examples_have_a_module_of_the_same_name() -> None:
    names = [path.name for path in EXAMPLES.glob("*/*.py")]
    assert len(names) == len({*names})


@pytest.mark.parametrize("name", ["shop.py", "test_shop.py"])
def test_the_page_shows_it_as_it_is(name: str) -> None:
    shown = f"```python\n# {name}\n{(EXAMPLES / 'testing' / name).read_text().rstrip()}\n```"
    assert shown in (ROOT / "docs" / "testing.md").read_text()
