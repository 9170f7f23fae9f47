"""An imitation of a real environment with linked libraries: it takes a second and needs no network.

It links the libraries of the environment that runs the tests. Its ``pip`` is a script that does the same, so ``pip
install 'penstock[metrics]'`` on a page adds the libraries of that extra. A library that no requirement names is
missing, so a page that forgets to install something fails. Its ``penstock`` is one process for all commands
(``command_server.py``).
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from docs_check import command_server
from docs_check.environment import ROOT

_PACKAGES = Path(sysconfig.get_path("purelib"))
_PIP = """#!{python}
import sys
sys.path.insert(0, {tests!r})
from docs_check.linked import LinkedEnvironment
LinkedEnvironment({folder!r}).pip(sys.argv[1:])
"""


def unpack(wheel: Path, folder: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)


class LinkedEnvironment:
    def __init__(self, folder: Path | str) -> None:
        self._folder = Path(folder)
        self.scripts = self._folder / "bin"
        self.variables: dict[str, str] = {}
        self.description = ""
        python = f"python{sys.version_info.major}.{sys.version_info.minor}"
        self._packages = self._folder / "lib" / python / "site-packages"

    def make(self, unpacked: Path) -> None:
        """``unpacked`` is a folder that ``unpack`` has filled. Environments share it and its bytecode."""
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self._folder)], check=True)
        for top in unpacked.iterdir():
            (self._packages / top.name).symlink_to(top)
        pip = _PIP.format(python=sys.executable, tests=str(ROOT / "tests"), folder=str(self._folder))
        self._write("pip", pip)
        self.install(["penstock"])
        self._write("penstock", command_server.client(str(self.scripts / "python"), str(self._folder)))
        self._first = self._content()
        self._server = self._start_server()

    def _start_server(self) -> "subprocess.Popen[bytes]":
        program = Path(command_server.__file__)
        server = subprocess.Popen(
            [str(self.scripts / "python"), "-P", str(program), str(self._folder)],
            env={name: value for name, value in os.environ.items() if not name.startswith(("PYTHONPATH", "PYTEST_"))},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert server.stdout
        assert server.stdout.readline(), "the server of commands ended"
        return server

    def renew(self) -> None:
        for added in self._content() - self._first:
            added.unlink()

    def _content(self) -> set[Path]:
        return {
            path for folder in (self._packages, self.scripts) for path in folder.iterdir() if path.name != "__pycache__"
        }

    def pip(self, arguments: list[str]) -> None:
        """The only command of pip that pages use: ``pip install NAME...``."""
        command, *names = arguments
        if command != "install":
            raise SystemExit(f"the pip of this check only installs, and was asked to {command}")
        self.install(names)

    def install(self, names: Iterable[str]) -> None:
        wanted, seen = [Requirement(name) for name in names], set[tuple[str, str]]()
        while wanted:
            requirement = wanted.pop()
            for extra in ("", *requirement.extras):
                name = canonicalize_name(requirement.name)
                if (name, extra) not in seen:
                    seen.add((name, extra))
                    wanted += _requirements(self._distribution(name), extra)

    def _distribution(self, name: str) -> Distribution:
        if name == "penstock":  # the wheel's own
            return Distribution.at(next(self._packages.glob("penstock-*.dist-info")))
        found = distribution(name)
        for top in {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}:
            link = self._packages / top
            if not link.exists():
                link.symlink_to(_PACKAGES / top)
        for script in found.entry_points.select(group="console_scripts"):
            self._write_script(script.name, f"from {script.module} import {script.attr}\n{script.attr}()\n")
        return found

    def _write_script(self, name: str, code: str) -> None:
        self._write(name, f"#!{self.scripts / 'python'}\n{code}")

    def _write(self, name: str, text: str) -> None:
        path = self.scripts / name
        path.write_text(text, "utf-8")
        path.chmod(0o755)

    def remove(self) -> None:
        self._server.terminate()
        self._server.communicate()
        shutil.rmtree(self._folder)


def _requirements(of: Distribution, extra: str) -> Iterator[Requirement]:
    for text in of.requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement
