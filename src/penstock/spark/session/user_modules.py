"""Which code of this machine executors elsewhere do not have: the app's modules, and what they import from beside them.

A module counts as installed where it lies in the interpreter's library or in a site-packages folder; the executors have
to have it themselves. Everything else on the Python path is the user's own.
"""

import ast
import importlib.util
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from zipimport import zipimporter

_NOT_SHIPPED = frozenset({"__pycache__"})
# An archive cannot hold these: Python loads them from a real file only.
_COMPILED = (".so", ".pyd", ".dylib")


@dataclass
class OwnCode:
    """``files`` goes from the place in the archive to the file here; ``installed`` are modules the executors need."""

    files: dict[str, Path] = field(default_factory=dict)
    installed: set[str] = field(default_factory=set)


def own_folders() -> list[Path]:
    """The folders of the Python path that are the user's own."""
    folders = [Path(entry).absolute() for entry in sys.path]
    return [folder for folder in dict.fromkeys(folders) if not _is_installed(folder)]


def find_own_code(modules: Iterable[str]) -> OwnCode:
    """These modules and, through the imports that stand in their files, all they need of the user's own code.

    A package is taken as a whole, with its data files, since what it imports while it runs does not show. Imports are
    read and not carried out: a handler may import when it is called, and nothing else may happen before that.
    """
    found, waiting, seen = OwnCode(), list(modules), set[str]()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            for place, file in _locate(name, found.installed):
                if place not in found.files:
                    found.files[place] = file
                    waiting += imports_of(file, place) if file.suffix == ".py" else ()
    return found


def package_files(name: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """All that a package holds, by its place in an archive; what tools leave behind is left out."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in _NOT_SHIPPED or path.suffix == ".pyc":
            continue
        if path.is_dir():
            if not path.is_symlink():
                yield from package_files(f"{name}/{path.name}", path)
        elif path.is_file():
            yield f"{name}/{path.name}", path


def imports_of(file: Path, place: str) -> Iterator[str]:
    """The dotted names that a source imports, wherever in it; of ``from a import b`` both a and a.b."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return  # it is data, or the app would have failed to load
    package = place.split("/")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            yield from filter(None, [base])
            yield from (f"{base}.{alias.name}".strip(".") for alias in node.names)


def _locate(name: str, installed: set[str]) -> Iterator[tuple[str, Path]]:
    """The files that this module comes in; nothing where executors have it anyway or have to have it installed."""
    top, _, rest = name.partition(".")
    if top == "__main__":
        # Its functions travel by value, so it is read for its imports and has no place of its own.
        yield from _beside_main(installed)
        return
    spec = None if top in sys.stdlib_module_names or top == "penstock" else _spec(top)
    if spec is None or isinstance(spec.loader, zipimporter):  # whoever put an archive on the path has shipped it too
        return
    if spec.origin is None:
        for location in spec.submodule_search_locations or ():
            if not _is_installed(Path(location)):
                yield from _in_namespace(Path(location), top, rest.split(".") if rest else [])
        return
    origin = Path(spec.origin)
    if _is_installed(origin):
        installed.add(top)
    elif origin.name == "__init__.py":
        files = list(package_files(top, origin.parent))
        if any(path.suffix in _COMPILED for _, path in files):
            installed.add(top)
        else:
            yield from files
    elif origin.suffix == ".py":
        yield f"{top}.py", origin
    else:
        installed.add(top)


def _beside_main(installed: set[str]) -> Iterator[tuple[str, Path]]:
    file = getattr(sys.modules["__main__"], "__file__", None) or ""
    for name in imports_of(Path(file), "") if file.endswith(".py") else ():
        yield from _locate(name, installed)


def _in_namespace(folder: Path, place: str, rest: list[str]) -> Iterator[tuple[str, Path]]:
    """A folder without ``__init__.py`` is no unit: of it just the module that is named."""
    if not rest:
        return
    here, place = folder / rest[0], f"{place}/{rest[0]}"
    if (here / "__init__.py").is_file():
        yield from package_files(place, here)
    elif here.with_name(f"{rest[0]}.py").is_file():
        yield f"{place}.py", here.with_name(f"{rest[0]}.py")
    elif here.is_dir():
        yield from _in_namespace(here, place, rest[1:])


def _spec(top: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(top)
    except (ImportError, ValueError):  # made by hand, without a spec
        return None


def _is_installed(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in _installed_folders())


@cache
def _installed_folders() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    library = [paths[kind] for kind in ("stdlib", "platstdlib", "purelib", "platlib", "scripts")]
    zipped = Path(paths["stdlib"]).with_name(f"python{sys.version_info.major}{sys.version_info.minor}.zip")
    folders = [*library, *site.getsitepackages(), site.getusersitepackages(), str(zipped)]
    return tuple(dict.fromkeys(each for folder in folders for each in (Path(folder), Path(folder).resolve())))
