"""The example in docs/testing.md is the one in examples/testing, and it works."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import penstock

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "testing"


def test_its_tests_pass() -> None:
    # The example must import the penstock that is tested here.
    environment = {**os.environ, "PYTHONPATH": str(Path(penstock.__file__).parents[1])}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    done = subprocess.run(command, cwd=EXAMPLE, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["shop.py", "test_shop.py"])
def test_the_page_shows_it_as_it_is(name: str) -> None:
    shown = f"```python\n# {name}\n{(EXAMPLE / name).read_text().rstrip()}\n```"
    assert shown in (ROOT / "docs" / "testing.md").read_text()
