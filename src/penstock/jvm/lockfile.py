"""Lock files: every file of a pinned set with its SHA-256, in the format of ``sha256sum``, by Maven path.

A lock is also the list to fetch from: with it, Ivy reads no poms and settles no versions, which takes a quarter of the
time and cannot give another set tomorrow. ``python -m penstock.jvm.relock`` writes the locks anew.
"""

from collections.abc import Mapping
from importlib import resources
from pathlib import PurePosixPath

from penstock.errors import SetupError
from penstock.jvm.coordinates import Artifact

Digests = Mapping[str, str]


def read_lock(name: str) -> Digests:
    """Return path → SHA-256 of the named lock."""
    text = resources.files("penstock.jvm").joinpath("locks", name).read_text("ascii")
    return {path: digest for digest, path in (line.split(maxsplit=1) for line in text.splitlines())}


def render_lock(digests: Digests) -> str:
    return "".join(f"{digests[path]}  {path}\n" for path in sorted(digests))


def locked_artifacts(lock: Digests) -> list[Artifact]:
    return [_artifact(PurePosixPath(path)) for path in lock]


def check_lock(title: str, lock: Digests, found: Digests) -> None:
    """Refuse a download that is not exactly what the lock lists."""
    for path in sorted({*lock, *found}):
        if lock.get(path) != found.get(path):
            raise SetupError(
                f"The download of {title} is not the pinned one: {_difference(path, lock, found)}.",
                hint="Use another network or registry (PENSTOCK_MAVEN_URL); nothing of this download was kept.",
            )


def _difference(path: str, lock: Digests, found: Digests) -> str:
    name = PurePosixPath(path).name
    if path not in found:
        return f"{name} is missing"
    if path not in lock:
        return f"{name} does not belong to it"
    return f"{name} has SHA-256 {found[path]}, not {lock[path]}"


def _artifact(path: PurePosixPath) -> Artifact:
    """Read ``org/example/name/1.0/name-1.0-classifier.jar`` back into a coordinate."""
    *organisation, name, version, file = path.parts
    rest = file.removeprefix(f"{name}-{version}")
    classifier, _, extension = rest.partition(".")
    return Artifact(".".join(organisation), name, version, classifier.removeprefix("-"), extension)
