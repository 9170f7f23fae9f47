"""Folders and files that only this user can read, durable writes, and clear errors for a full or read-only disk."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from penstock.errors import SetupError

_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600
_FULL = {errno.ENOSPC, errno.EDQUOT}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.EISDIR}
DISK_ERRORS = _FULL | _FORBIDDEN


def make_private(folder: Path, *, home: Path | None = None) -> None:
    """Create the folder. Only this user may read it, its parents up to ``home``, and the files that are in it.

    The files have data of runs, replays and groups, which other users must not see, whatever the umask is.
    """
    home = home or folder
    create_folder(folder, mode=_PRIVATE_FOLDER)
    for each in (folder, *folder.parents):
        _restrict(each, _PRIVATE_FOLDER)
        if each == home or home not in each.parents:
            break
    for file in folder.iterdir():
        if file.is_file() and not file.is_symlink():
            _restrict(file, _PRIVATE_FILE)


def create_folder(folder: Path, *, mode: int = 0o777) -> None:
    """Create the folder and its parents. Where the system has no folders of users, as in /proc, that is forbidden."""
    try:
        folder.mkdir(mode=mode, parents=True, exist_ok=True)
    except FileNotFoundError as error:
        raise PermissionError(errno.EPERM, "no folder can be created there", str(folder)) from error


def open_private(path: Path, mode: str) -> IO[Any]:
    """Open a file, for bytes or text in UTF-8, that only this user may read."""
    file = open(  # noqa: SIM115 - Path.open takes no opener; the caller closes it
        path,
        mode,
        encoding=None if "b" in mode else "utf-8",
        opener=lambda name, flags: os.open(name, flags, _PRIVATE_FILE),
    )
    _restrict(path, _PRIVATE_FILE)
    return file


def _restrict(path: Path, mode: int) -> None:
    """Set the mode, except for paths of other users, shared folders (sticky bit), the user's home and the root."""
    with suppress(OSError):  # it was deleted, or the file system has no modes
        found = path.stat()
        is_shared = found.st_mode & stat.S_ISVTX or path in (Path.home(), Path(path.anchor))
        if found.st_uid == os.getuid() and not is_shared and stat.S_IMODE(found.st_mode) != mode:
            path.chmod(mode)


@contextmanager
def disk_problems_explained(folder: Path, *, setting: str) -> Iterator[None]:
    """Turn errors of a full, read-only or forbidden disk into a SetupError. ``setting`` names what moves the folder."""
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
    """Write a small private file. Even after a power cut, readers see the old content or the new one."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.draft")
    try:
        with open_private(draft, "wb") as file:
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
