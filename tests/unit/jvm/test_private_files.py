import errno
import fcntl
from pathlib import Path

import pytest

from penstock.errors import SetupError
from penstock.jvm.filelock import exclusive
from penstock.jvm.private_files import disk_problems_explained, write_durably


def test_a_full_disk_is_one_sentence() -> None:
    with (
        pytest.raises(SetupError, match="The disk that holds /data is full") as caught,
        disk_problems_explained(Path("/data"), setting="--data"),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert "--data" in caught.value.hint


def test_a_read_only_folder_is_an_error_in_one_sentence() -> None:
    with (
        pytest.raises(SetupError, match="Cannot write to /data/x: read-only file system"),
        disk_problems_explained(Path("/data"), setting="--data"),
    ):
        raise OSError(errno.EROFS, "Read-only file system", "/data/x")


def test_a_folder_that_the_system_does_not_create_is_an_error_in_one_sentence() -> None:
    with (
        pytest.raises(SetupError, match="Cannot write to /proc/penstock: no folder can be created there"),
        disk_problems_explained(Path("/proc/penstock"), setting="PENSTOCK_HOME"),
        exclusive(Path("/proc/penstock/lock"), timeout=0, on_wait=lambda: None),
    ):
        pass


def test_other_faults_pass_as_they_are() -> None:
    with pytest.raises(ConnectionResetError), disk_problems_explained(Path("/data"), setting="--data"):
        raise ConnectionResetError(errno.ECONNRESET, "reset")


def test_a_durable_write_replaces_and_leaves_no_draft(tmp_path: Path) -> None:
    write_durably(tmp_path / "x", b"one")
    write_durably(tmp_path / "x", b"two")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"x": b"two"}


def test_the_lock_is_free_again_after_the_block(tmp_path: Path) -> None:
    for _ in range(2):
        with exclusive(tmp_path / "lock", timeout=0, on_wait=pytest.fail):
            pass


def test_waiting_too_long_for_the_lock_is_an_error(tmp_path: Path) -> None:
    waited: list[bool] = []
    with (tmp_path / "lock").open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with (
            pytest.raises(SetupError, match="Another penstock process"),
            exclusive(tmp_path / "lock", timeout=0.15, on_wait=lambda: waited.append(True)),
        ):
            pytest.fail("got a lock that somebody holds")
    assert waited == [True]
