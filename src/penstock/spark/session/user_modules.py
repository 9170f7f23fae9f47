"""Finds the user's own code, which executors on other machines lack: the app's modules and what those import.

A module counts as installed if it is in the interpreter's library or in a site-packages folder; executors must have
such modules installed. Everything else on the Python path is the user's own code.
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
# Python cannot import these from an archive.
_COMPILED = (".so", ".pyd", ".dylib")


@dataclass
class OwnCode:
    """``files`` maps paths in the archive to local files; ``installed`` are modules that executors must have."""

    files: dict[str, Path] = field(default_factory=dict)
    installed: set[str] = field(default_factory=set)


def own_folders() -> list[Path]:
    """Return the folders of the Python path with the user's own code."""
    folders = [Path(entry).absolute() for entry in sys.path]
    return [folder for folder in dict.fromkeys(folders) if not _is_installed(folder)]


def find_own_code(modules: Iterable[str]) -> OwnCode:
    """Return the code of these modules and of all modules of the user that they import.

    Takes a package as a whole, with its data files, because imports at run time do not show. Reads the import
    statements and does not run them: a handler may import only when it is called, and importing may have side effects.
    """
    found, waiting, seen = OwnCode(), list(modules), set[str]()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            for target, file in _locate(name, found.installed):
                if target not in found.files:
                    found.files[target] = file
                    waiting += imports_of(file, target) if file.suffix == ".py" else ()
    return found


def package_files(name: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """Return the files of a package with their paths in the archive, without hidden and compiled files."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in _NOT_SHIPPED or path.suffix == ".pyc":
            continue
        if path.is_dir():
            if not path.is_symlink():
                yield from package_files(f"{name}/{path.name}", path)
        elif path.is_file():
            yield f"{name}/{path.name}", path


def imports_of(file: Path, target: str) -> Iterator[str]:
    """Return the dotted names that a source file imports anywhere; for ``from a import b`` both a and a.b."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return  # it is a data file: the app has imported all of its code
    package = target.split("/")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            yield from filter(None, [base])
            yield from (f"{base}.{alias.name}".strip(".") for alias in node.names)


def _locate(name: str, installed: set[str]) -> Iterator[tuple[str, Path]]:
    """Return the files of this module; none if executors have it, or must have it installed."""
    top, _, rest = name.partition(".")
    if top == "__main__":
        # Its functions are pickled by value, so only its imports are needed.
        yield from _beside_main(installed)
        return
    spec = None if top in sys.stdlib_module_names or top == "penstock" else _spec(top)
    if spec is None or isinstance(spec.loader, zipimporter):  # an archive on the path was sent by spark-submit
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


def _in_namespace(folder: Path, target: str, rest: list[str]) -> Iterator[tuple[str, Path]]:
    """Return only the named module of a folder without ``__init__.py``: others in it may belong to something else."""
    if not rest:
        return
    here, target = folder / rest[0], f"{target}/{rest[0]}"
    if (here / "__init__.py").is_file():
        yield from package_files(target, here)
    elif here.with_name(f"{rest[0]}.py").is_file():
        yield f"{target}.py", here.with_name(f"{rest[0]}.py")
    elif here.is_dir():
        yield from _in_namespace(here, target, rest[1:])


def _spec(top: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(top)
    except (ImportError, ValueError):  # a module without a spec, made by code
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
