"""Write the lock files anew after a version in ``coordinates`` changed: ``python -m penstock.jvm.relock``."""

import sys
import tempfile
from pathlib import Path

from penstock.jvm.coordinates import APICURIO, KAFKA, Coordinates, kafka_tools
from penstock.jvm.ivy import Request, run_ivy
from penstock.jvm.ivy_failures import explain
from penstock.jvm.java import find_java
from penstock.jvm.lockfile import render_lock
from penstock.jvm.manifest import take_manifest
from penstock.jvm.progress import silent


def relock(coordinates: Coordinates) -> str:
    """Resolve the set from its coordinates alone and return the text of its lock."""
    with tempfile.TemporaryDirectory() as scratch:
        work, target = Path(scratch, "ivy"), Path(scratch, "set")
        work.mkdir()
        target.mkdir()
        # An archive stands for itself; jars bring the jars they depend on.
        request = Request(coordinates.title, coordinates.artifacts, exact=coordinates.unpack)
        outcome = run_ivy(find_java(), request, work=work, target=target, progress=silent)
        if not outcome.succeeded:
            raise explain(coordinates.title, outcome.output, cache=work).error
        return render_lock(take_manifest(target).digests())


def main() -> None:
    for coordinates in (KAFKA, APICURIO, kafka_tools()):
        lock = relock(coordinates)
        Path(__file__).with_name("locks").joinpath(f"{coordinates.lock}").write_text(lock, "ascii")
        sys.stdout.write(f"{coordinates.title}: {len(lock.splitlines())} files\n")


if __name__ == "__main__":
    main()
