"""Downloads sets of jars once into the cache, and checks them before each use.

Each set has its own folder in the cache, named after its artifacts and a hash. One rename creates the folder, complete
and with a manifest. After that, no network is needed. A lock lists the files of a set; without one, ``dependencies``
resolves them.
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
from penstock.jvm.progress_callback import ProgressCallback, silent
from penstock.paths import CACHE_VARIABLE, jar_cache

_LOCK_SECONDS = 2400
_DRAFT = "draft-"
_TAG_LENGTH = 12


def resolve(coordinates: Coordinates, *, progress: ProgressCallback = silent) -> list[Path]:
    """Return the files of the set. Download them first if they are missing or damaged."""
    cache = jar_cache()
    folder = cache / _folder_name(coordinates)
    with disk_problems_explained(cache, setting=CACHE_VARIABLE):
        if files := _intact(folder):
            return files

        def waiting() -> None:
            progress(f"Waiting for another process that downloads {coordinates.title}")

        with exclusive(cache / "lock", timeout=_LOCK_SECONDS, on_wait=waiting):
            # The process that held the lock may have downloaded the same set.
            if files := _intact(folder):
                return files
            if folder.exists():
                progress(f"{coordinates.title} was damaged on disk ({_damage(folder)}): fetching it again")
            _fetch(coordinates, folder, progress)
        return _intact(folder)


def _folder_name(coordinates: Coordinates) -> str:
    """Name the set after its first artifact and a hash of all artifacts and the lock."""
    pinned = read_lock(coordinates.lock).digests() if coordinates.lock else {}
    asked = repr((coordinates.artifacts, sorted(pinned.items())))
    tag = hashlib.sha256(asked.encode()).hexdigest()[:_TAG_LENGTH]
    first = coordinates.artifacts[0]
    return f"{first.name}-{first.version}-{tag}"


def _intact(folder: Path) -> list[Path]:
    """Return the files of the set, or none if any of them differs from the manifest."""
    manifest = read_manifest(folder)
    if manifest is None or find_damage(folder, manifest):
        return []
    return manifest.paths(folder)


def _damage(folder: Path) -> str:
    manifest = read_manifest(folder)
    return (manifest and find_damage(folder, manifest)) or MANIFEST_NAME


def _fetch(coordinates: Coordinates, folder: Path, progress: ProgressCallback) -> None:
    _remove_drafts(folder.parent)
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


def _files(coordinates: Coordinates, work: Path, progress: ProgressCallback) -> Sequence[Entry | Unlocked]:
    if coordinates.lock:
        return read_lock(coordinates.lock).files
    from penstock.jvm.dependencies import find_files  # noqa: PLC0415 - imports jgo, which takes half a second

    return find_files(coordinates.title, coordinates.artifacts, work=work, progress=progress)


def _remove_drafts(cache: Path) -> None:
    """Remove the drafts of killed processes. We hold the lock, so no other process uses one."""
    for leftover in cache.glob(f"{_DRAFT}*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _unpack(archives: list[Path], target: Path) -> Path:
    """Unpack only regular files, and only below the target: an archive may name other paths."""
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
