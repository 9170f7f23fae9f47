"""A real environment: a virtual environment of Python 3.12 with the real pip.

As for a reader, pip installs the wheel from a file, and its requirements from the package registry.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# The Python to use instead of the newest 3.12. It has no prefix PENSTOCK_, because apps would take it as an option.
CHOICE = "DOCS_PYTHON"
_WANTED = (3, 12)
_OLDEST = (3, 11)


class DocsPythonError(Exception):
    """The Python that ``DOCS_PYTHON`` names cannot be used."""


class InstallError(AssertionError):
    """The environment could not be created, or pip could not install the wheel."""


class RealEnvironment:
    """A virtual environment with pip only, until ``install``."""

    def __init__(self, folder: Path, python: str) -> None:
        self._folder = folder
        self._original = folder.with_name(f"{folder.name}-original")
        self._python = python
        self.scripts = folder / "bin"
        # Python compiles modules when it imports them. Most modules of Spark and pandas are never imported here.
        self.variables = {"PIP_NO_COMPILE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        self.description = ""

    def make(self) -> None:
        self._run(self._python, "-m", "venv", str(self._folder))
        pip = self._run(str(self.scripts / "pip"), "--version").split()[1]
        self.description = f"Python {_text(_version_of(self._python))} ({self._python}), pip {pip}"

    def install(self, wheel: Path) -> None:
        self._run(str(self.scripts / "pip"), "install", str(wheel))

    def keep(self) -> None:
        """Keep it as the original of the copies.

        pip takes 10 seconds and more, a copy takes one. A virtual environment works only in the folder where it was
        created, so each copy has to be in that folder, and is removed before the next one.
        """
        self._folder.rename(self._original)

    def copy(self) -> None:
        shutil.copytree(self._original, self._folder, symlinks=True)

    def renew(self) -> None:
        self.remove()
        self.copy()

    def remove(self) -> None:
        shutil.rmtree(self._folder)

    def _run(self, *command: str) -> str:
        hidden = ("VIRTUAL_ENV", "PYTHONPATH")
        done = subprocess.run(
            command,
            check=False,
            env={**{name: value for name, value in os.environ.items() if name not in hidden}, **self.variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode != 0:
            raise InstallError(f"`{' '.join(command)}` ended with {done.returncode}:\n{done.stdout[-4_000:]}")
        return done.stdout


def find_python() -> str:
    """Return the Python that ``DOCS_PYTHON`` names, else a 3.12 that runs, else the one that runs the tests."""
    if chosen := os.environ.get(CHOICE):
        version = _version_of(chosen)
        if version < _OLDEST:
            problem = f"is Python {_text(version)}" if version else "does not run, or makes no virtual environments"
            raise DocsPythonError(f"{CHOICE}={chosen} {problem}. Name a Python {_text(_OLDEST)} or newer.")
        return chosen
    return next((each for each in _candidates() if _version_of(each)[:2] == _WANTED), sys.executable)


def _candidates() -> Iterator[str]:
    if on_path := shutil.which(f"python{_text(_WANTED)}"):
        yield on_path
    versions = Path(os.environ.get("PYENV_ROOT") or "~/.pyenv").expanduser() / "versions"
    # 3.12.1 comes before 3.12.10.
    by_number = sorted(versions.glob(f"{_text(_WANTED)}.*"), key=lambda each: (len(each.name), each.name))
    yield from (str(version / "bin" / "python") for version in reversed(by_number))


def _version_of(python: str) -> tuple[int, ...]:
    """The version that it prints; empty if it does not run. A shim of pyenv can exist and not work."""
    code = "import ensurepip, sys, venv; print(*sys.version_info[:3])"
    try:
        done = subprocess.run([python, "-c", code], check=False, capture_output=True, text=True)
    except OSError:
        return ()
    return tuple(map(int, done.stdout.split())) if done.returncode == 0 else ()


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
