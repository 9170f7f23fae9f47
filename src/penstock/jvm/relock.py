"""Write the lock files after a version in ``coordinates`` changed: ``python -m penstock.jvm.relock``, with PySpark."""

import sys
import tempfile
import urllib.request
from pathlib import Path

from penstock.jvm.coordinates import APICURIO, KAFKA, Artifact, Coordinates, kafka_tools, pinned_packages
from penstock.jvm.installed_spark import not_in_spark
from penstock.jvm.ivy import resolve_by_ivy
from penstock.jvm.lockfile import render_lock
from penstock.jvm.manifest import take_manifest
from penstock.jvm.progress import silent
from penstock.jvm.registry import find_registry


def relock(coordinates: Coordinates, *, beside_spark: bool = False) -> str:
    """Resolve the set from its coordinates alone and return the text of its lock."""
    with tempfile.TemporaryDirectory() as scratch:
        work, target = Path(scratch, "ivy"), Path(scratch, "set")
        work.mkdir()
        target.mkdir()
        if coordinates.unpack:  # an archive stands for itself; jars bring the jars they depend on
            for artifact in coordinates.artifacts:
                _fetch(artifact, target)
        else:
            resolve_by_ivy(coordinates.title, coordinates.artifacts, work=work, target=target, progress=silent)
        if beside_spark:
            jars = set(target.rglob("*.jar"))
            for path in jars - set(not_in_spark(jars)):
                path.unlink()
        return render_lock(take_manifest(target))


def _fetch(artifact: Artifact, target: Path) -> None:
    place = target / artifact.path()
    place.parent.mkdir(parents=True)
    urllib.request.urlretrieve(find_registry().root + artifact.path(), place)  # noqa: S310 - http(s) or file


def main() -> None:
    packages = pinned_packages()
    for coordinates in (KAFKA, APICURIO, kafka_tools(), *packages):
        lock = relock(coordinates, beside_spark=coordinates in packages)
        Path(__file__).with_name("locks").joinpath(f"{coordinates.lock}").write_text(lock, "ascii")
        sys.stdout.write(f"{coordinates.title}: {len(lock.splitlines())} files\n")


if __name__ == "__main__":
    main()
