"""Writes the lock files. Run it after a version in ``coordinates`` has changed.

Run ``python -m penstock.jvm.update_locks`` with PySpark installed.
"""

import sys
import tempfile
from pathlib import Path

from penstock.jvm.coordinates import APICURIO, KAFKA, Coordinates, kafka_tools, pinned_packages
from penstock.jvm.dependencies import find_files
from penstock.jvm.download import Unlocked, download
from penstock.jvm.installed_spark import not_in_spark
from penstock.jvm.lockfile import render_lock
from penstock.jvm.manifest import take_manifest
from penstock.jvm.progress_callback import silent


def relock(coordinates: Coordinates, *, beside_spark: bool = False) -> str:
    """Resolve the set from its coordinates alone and return the text of its lock."""
    with tempfile.TemporaryDirectory() as scratch:
        work, target = Path(scratch, "poms"), Path(scratch, "set")
        work.mkdir()
        target.mkdir()
        if coordinates.unpack:  # an archive has no dependencies; jars have
            files = [Unlocked(artifact.path()) for artifact in coordinates.artifacts]
        else:
            files = find_files(coordinates.title, coordinates.artifacts, work=work, progress=silent)
        download(coordinates.title, files, target, progress=silent)
        if beside_spark:
            jars = set(target.rglob("*.jar"))
            for path in jars - set(not_in_spark(jars)):
                path.unlink()
        return render_lock(take_manifest(target))


def main() -> None:
    packages = pinned_packages()
    for coordinates in (KAFKA, APICURIO, kafka_tools(), *packages):
        lock = relock(coordinates, beside_spark=coordinates in packages)
        Path(__file__).with_name("locks").joinpath(f"{coordinates.lock}").write_text(lock, "ascii")
        sys.stdout.write(f"{coordinates.title}: {len(lock.splitlines())} files\n")


if __name__ == "__main__":
    main()
