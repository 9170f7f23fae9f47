"""Where downloads live, and what can be wrong with a place on disk."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from platformdirs import user_cache_path

from penstock.errors import SetupError

_FULL = {errno.ENOSPC, errno.EDQUOT}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.EISDIR}
DISK_ERRORS = _FULL | _FORBIDDEN


def jar_cache() -> Path:
    """Return the folder of downloaded jars; ``PENSTOCK_CACHE`` moves it."""
    root = os.environ.get("PENSTOCK_CACHE")
    return (Path(root).expanduser() if root else user_cache_path("penstock")) / "jars"


@contextmanager
def disk_problems_explained(folder: Path, *, setting: str) -> Iterator[None]:
    """Turn a full, read-only or forbidden disk into one sentence; ``setting`` is what moves the folder elsewhere."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise disk_full(folder, setting=setting) from error
        if error.errno in _FORBIDDEN:
            raise _not_writable(error, folder, setting=setting) from error
        raise


def _not_writable(error: OSError, folder: Path, *, setting: str) -> SetupError:
    return SetupError(
        f"Cannot write to {error.filename or folder}: {(error.strerror or str(error)).lower()}.",
        hint=f"Make {folder} a writable folder, or set {setting} to one.",
    )


def disk_full(folder: Path, *, setting: str) -> SetupError:
    return SetupError(
        f"The disk that holds {folder} is full.",
        hint=f"Free some space, or set {setting} to a folder on another disk, then run the command again.",
    )


def write_durably(path: Path, content: bytes) -> None:
    """Write a small file so that readers, even after a power cut, see either the old content or the new one."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.draft")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make renames inside the folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
