"""The source archive has everything that a person without a clone needs."""

import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# A file or a folder of this project, as commands and texts write it.
_PATH = re.compile(r"\b(?:benchmarks|deploy|docs|examples|requirements|scripts|src|tests)/[\w./-]*[\w]")
_LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
_MODULE = re.compile(r"PYTHONPATH=tests \S+ -m (\w+)")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tarfile.TarInfo]:
    """Path → entry of the archive, without its outermost folder."""
    target = tmp_path_factory.mktemp("sdist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(target)],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    with tarfile.open(next(target.glob("penstock-*.tar.gz"))) as tar:
        return {member.name.partition("/")[2]: member for member in tar}


def named_paths() -> set[str]:
    """Every path that the Makefile and the texts name."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    named = {*_PATH.findall(makefile), *(f"tests/{name}" for name in _MODULE.findall(makefile))}
    for text in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")):
        for link in _LINK.findall(text.read_text("utf-8")):
            named.add((text.parent / link).resolve().relative_to(ROOT).as_posix())
    return named


def test_the_archive_has_all_files_that_the_makefile_and_the_docs_name(archive: dict[str, tarfile.TarInfo]) -> None:
    named = named_paths()
    assert {"scripts/install", "requirements/dev.txt", "tests/chaos", "CONTRIBUTING.md", "benchmarks"} <= named | {
        path.partition("/")[0] for path in named
    }
    held = {*archive, *(parent.as_posix() for path in archive for parent in Path(path).parents)}
    assert sorted(path for path in named if path not in held and f"{path}.py" not in held) == []


def test_the_archive_has_the_files_that_the_tools_read(archive: dict[str, tarfile.TarInfo]) -> None:
    assert {"Makefile", "pyproject.toml", ".importlinter", ".gitignore", "tests/kafka_helpers.py"} <= archive.keys()


def test_its_scripts_can_be_executed(archive: dict[str, tarfile.TarInfo]) -> None:
    scripts = [entry for path, entry in archive.items() if path.startswith("scripts/") and path.count("/") == 1]
    assert scripts
    assert all(entry.mode & 0o100 for entry in scripts)
