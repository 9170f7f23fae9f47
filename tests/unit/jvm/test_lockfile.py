import re

import pytest

from penstock.jvm.coordinates import APICURIO, KAFKA, Artifact, Coordinates, kafka_tools, pinned_packages
from penstock.jvm.lockfile import read_lock, render_lock
from penstock.jvm.manifest import Entry, Manifest

ONE, TWO = "1" * 64, "2" * 64


@pytest.mark.parametrize(
    "coordinates", [KAFKA, APICURIO, kafka_tools(), *pinned_packages()], ids=lambda each: str(each.lock)
)
def test_every_pinned_set_has_a_lock_that_lists_its_artifacts(coordinates: Coordinates) -> None:
    assert coordinates.lock
    lock = read_lock(coordinates.lock)
    assert set(coordinates.artifacts) <= {Artifact.of_path(entry.path) for entry in lock.files}
    assert all(re.fullmatch("[0-9a-f]{64}", entry.sha256) for entry in lock.files)
    assert all(entry.size > 0 for entry in lock.files)


def test_a_lock_is_written_sorted_and_read_back() -> None:
    manifest = Manifest((Entry("b/y.jar", 2_000, TWO), Entry("a/x.jar", 1, ONE)))
    assert render_lock(manifest) == f"{ONE}         1 a/x.jar\n{TWO}      2000 b/y.jar\n"
