import re

import pytest

from penstock.errors import SetupError
from penstock.jvm.coordinates import APICURIO, KAFKA, Artifact, Coordinates
from penstock.jvm.lockfile import check_lock, locked_artifacts, read_lock, render_lock

ONE, TWO = "1" * 64, "2" * 64


@pytest.mark.parametrize("coordinates", [KAFKA, APICURIO])
def test_every_pinned_set_has_a_lock_that_lists_its_artifacts(coordinates: Coordinates) -> None:
    assert coordinates.lock
    lock = read_lock(coordinates.lock)
    assert set(coordinates.artifacts) <= set(locked_artifacts(lock))
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in lock.values())


def test_a_maven_path_is_read_back_into_its_coordinate() -> None:
    lock = {"org/example/deep/tool_2.13/1.0.Final/tool_2.13-1.0.Final-all.tar.gz": ONE}
    assert locked_artifacts(lock) == [Artifact("org.example.deep", "tool_2.13", "1.0.Final", "all", "tar.gz")]


def test_the_same_files_pass() -> None:
    check_lock("X", {"a/x.jar": ONE}, {"a/x.jar": ONE})


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ({"a/x.jar": TWO, "a/y.jar": TWO}, f"x.jar has SHA-256 {TWO}, not {ONE}"),
        ({"a/x.jar": ONE}, "y.jar is missing"),
        ({"a/x.jar": ONE, "a/y.jar": TWO, "a/z.jar": ONE}, "z.jar does not belong to it"),
    ],
)
def test_any_difference_is_refused_by_name(found: dict[str, str], reason: str) -> None:
    with pytest.raises(SetupError, match=re.escape(reason)):
        check_lock("X", {"a/x.jar": ONE, "a/y.jar": TWO}, found)


def test_a_lock_is_written_sorted_in_the_format_of_sha256sum() -> None:
    assert render_lock({"b/y.jar": TWO, "a/x.jar": ONE}) == f"{ONE}  a/x.jar\n{TWO}  b/y.jar\n"
