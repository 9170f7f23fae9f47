"""Archives of loaded Java classes, which halve the CPU time that a broker or a Spark driver needs to start.

A JVM writes the classes that it has loaded into a file when it ends (``-XX:ArchiveClassesAtExit``). The next JVM with
the same Java and class path maps that file into memory (``-XX:SharedArchiveFile``) instead of loading the classes
again. Writing takes some seconds, so the first JVM of a class path writes nothing: there may never be a second one.
Archives are optional: if one cannot be written or used, the JVM starts without it.
"""

import hashlib
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from penstock.paths import class_archives

# Java writes the header of an archive last. Before that the file begins with zeros.
_UNFINISHED = bytes(4)
# An archive of Spark's classes takes 140 MB, and each environment with PySpark needs its own.
_MOST_ARCHIVES = 6
_MOST_MARKS = 100
_ARCHIVES, _MARKS = (".jsa", ".part"), (".seen",)
_KEY_LENGTH = 16
# Java warns of each class that an archive cannot hold.
_QUIET = "-Xlog:cds*=off"


def archive_flags(name: str, java: Path, class_path: Iterable[str | Path]) -> list[str]:
    """Return the flags of a JVM with this class path: none the first time, then to write an archive, then to use it."""
    try:
        folder = class_archives()
        folder.mkdir(parents=True, exist_ok=True)
        stem = f"{name}-{_key(java, class_path)}"
        archive = _find(folder, stem) or _adopt(folder, stem)
        if archive is not None:
            return [_QUIET, f"-XX:SharedArchiveFile={archive}"]
        if not _was_seen(folder / f"{stem}.seen"):
            return []
        return [_QUIET, f"-XX:ArchiveClassesAtExit={folder / f'{stem}-{uuid4().hex[:8]}.part'}"]
    except OSError:
        return []


def writes_archive(flags: Iterable[str]) -> bool:
    """Return whether a JVM with these flags writes an archive when it ends, which takes some seconds."""
    return any(flag.startswith("-XX:ArchiveClassesAtExit=") for flag in flags)


def _key(java: Path, class_path: Iterable[str | Path]) -> str:
    """Hash Java and the jars: Java refuses an archive that another Java wrote, or of other jars."""
    parts = [_identity(java.resolve()), *(_identity(Path(each)) for each in class_path)]
    return hashlib.sha256("\n".join(parts).encode(errors="replace")).hexdigest()[:_KEY_LENGTH]


def _identity(path: Path) -> str:
    with suppress(OSError):
        found = path.stat()
        return f"{path} {found.st_size} {found.st_mtime_ns}"
    return str(path)


def _was_seen(mark: Path) -> bool:
    """Return whether a JVM with this class path was started before, and remember that it is now."""
    found = mark.exists()
    mark.touch()
    return found


def _find(folder: Path, stem: str) -> Path | None:
    """Return the archive if it is complete. Java crashes on a truncated one, so the size is part of its name."""
    for path in folder.glob(f"{stem}-*.jsa"):
        size = re.fullmatch(re.escape(stem) + r"-(\d+)\.jsa", path.name)
        if size and path.stat().st_size == int(size[1]):
            os.utime(path)
            return path
        path.unlink(missing_ok=True)
    return None


def _adopt(folder: Path, stem: str) -> Path | None:
    """Rename a file that an earlier JVM has finished writing to an archive; delete duplicates."""
    archive = None
    for part in folder.glob(f"{stem}-*.part"):
        with suppress(FileNotFoundError):  # another process adopts it at the same time
            if archive is None and _is_finished(part):
                archive = part.rename(folder / f"{stem}-{part.stat().st_size}.jsa")
            elif archive is not None:
                part.unlink()
    if archive is not None:
        _remove_oldest(folder)
    return archive


def _is_finished(part: Path) -> bool:
    with part.open("rb") as file:
        if file.read(len(_UNFINISHED)) in (b"", _UNFINISHED):
            return False
        # After a power cut the file must not have its size without its content.
        os.fsync(file.fileno())
        return True


def _remove_oldest(folder: Path) -> None:
    """A JVM that uses a removed archive keeps it until it ends."""
    for suffixes, most in ((_ARCHIVES, _MOST_ARCHIVES), (_MARKS, _MOST_MARKS)):
        found = [path for path in folder.iterdir() if path.suffix in suffixes]
        for path in sorted(found, key=lambda path: -path.stat().st_mtime)[most:]:
            path.unlink(missing_ok=True)
