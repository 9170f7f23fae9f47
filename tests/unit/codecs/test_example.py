"""The example in examples/decoding works, and docs/decoding.md shows the same code."""

import os
import subprocess
import sys
from pathlib import Path

import penstock

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "decoding"


def test_its_tests_pass() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(penstock.__file__).parents[1])}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    done = subprocess.run(command, cwd=EXAMPLE, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_shows_it_as_it_is() -> None:
    shown = f"```python\n# customers.py\n{(EXAMPLE / 'customers.py').read_text().rstrip()}\n```"
    assert shown in (ROOT / "docs" / "decoding.md").read_text()
