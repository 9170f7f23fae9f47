"""Fetching sets of jars once, checking them ever after.

Each set has a folder of its own in the cache, named by what was asked for. It appears there by one rename, complete and
with a manifest; from then on the network is not needed to use it. A lock lists the files of a set; for a set without
one, ``dependencies`` finds them out.
"""

import hashlib
import shutil
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from penstock.errors import SetupError
from penstock.jvm.coordinates import Coordinates
from penstock.jvm.download import Unlocked, download
from penstock.jvm.filelock import exclusive
from penstock.jvm.lockfile import read_lock
from penstock.jvm.manifest import MANIFEST_NAME, Entry, find_damage, read_manifest, take_manifest, write_manifest
from penstock.jvm.private_files import disk_problems_explained, sync_folder
from penstock.jvm.progress_callback import Progress, silent
from penstock.paths import CACHE_VARIABLE, jar_cache

_LOCK_SECONDS = 2400
_DRAFT = "draft-"
_TAG_LENGTH = 12


def resolve(coordinates: Coordinates, *, progress: Progress = silent) -> list[Path]:
    """Return the files of the set, fetching them first where they are missing or damaged."""
    cache = jar_cache()
    folder = cache / _folder_name(coordinates)
    with disk_problems_explained(cache, setting=CACHE_VARIABLE):
        if files := _intact(folder):
            return files

        def waiting() -> None:
            progress(f"Waiting for another process that downloads {coordinates.title}")

        with exclusive(cache / "lock", timeout=_LOCK_SECONDS, on_wait=waiting):
            # Whoever held the lock may have fetched the very same set.
            if files := _intact(folder):
                return files
            if folder.exists():
                progress(f"{coordinates.title} was damaged on disk ({_damage(folder)}): fetching it again")
            _fetch(coordinates, folder, progress)
        return _intact(folder)


def _folder_name(coordinates: Coordinates) -> str:
    """Name the set after its first artifact and a hash of all that was asked, the lock included."""
    pinned = read_lock(coordinates.lock).digests() if coordinates.lock else {}
    asked = repr((coordinates.artifacts, sorted(pinned.items())))
    tag = hashlib.sha256(asked.encode()).hexdigest()[:_TAG_LENGTH]
    first = coordinates.artifacts[0]
    return f"{first.name}-{first.version}-{tag}"


def _intact(folder: Path) -> list[Path]:
    """Return the set's files, or nothing where any of them is not as the manifest says."""
    manifest = read_manifest(folder)
    if manifest is None or find_damage(folder, manifest):
        return []
    return manifest.paths(folder)


def _damage(folder: Path) -> str:
    manifest = read_manifest(folder)
    return (manifest and find_damage(folder, manifest)) or MANIFEST_NAME


def _fetch(coordinates: Coordinates, folder: Path, progress: Progress) -> None:
    _sweep(folder.parent)
    draft = Path(tempfile.mkdtemp(prefix=_DRAFT, dir=folder.parent))
    try:
        work, target = draft / "poms", draft / "set"
        work.mkdir()
        target.mkdir()
        files = _files(coordinates, work, progress)
        download(coordinates.title, files, target, progress=progress)
        manifest = take_manifest(target)
        if coordinates.unpack:
            progress(f"Unpacking {coordinates.title}")
            target = _unpack(manifest.paths(target), draft / "unpacked")
            manifest = take_manifest(target)
        write_manifest(target, manifest)
        _publish(target, folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _files(coordinates: Coordinates, work: Path, progress: Progress) -> Sequence[Entry | Unlocked]:
    if coordinates.lock:
        return read_lock(coordinates.lock).files
    from penstock.jvm.dependencies import find_files  # noqa: PLC0415 - imports jgo, which takes half a second

    return find_files(coordinates.title, coordinates.artifacts, work=work, progress=progress)


def _sweep(cache: Path) -> None:
    """Remove the drafts of killed processes; the lock says that nobody is at work on one."""
    for leftover in cache.glob(f"{_DRAFT}*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _unpack(archives: list[Path], target: Path) -> Path:
    """Unpack regular files only, and only to places below the target, whatever the archive says."""
    for archive in archives:
        with tarfile.open(archive) as tar:
            for member in tar:
                path = (target / member.name).resolve()
                if not path.is_relative_to(target.resolve()):
                    raise SetupError(f"{archive.name} has a path that leads out of its folder: {member.name}.")
                source = tar.extractfile(member) if member.isfile() else None
                if source is None:
                    continue
                path.parent.mkdir(parents=True, exist_ok=True)
                with source, path.open("wb") as file:
                    shutil.copyfileobj(source, file)
    return target


def _publish(target: Path, folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
    target.rename(folder)
    sync_folder(folder.parent)
