"""Lock files: every file of a pinned set with its SHA-256, its size and its Maven path, one a line.

A lock is also the list to download from: nothing has to be resolved, and tomorrow's set is today's.
``python -m penstock.jvm.update_locks`` writes the locks.
"""

from importlib import resources

from penstock.jvm.manifest import Entry, Manifest


def has_lock(name: str) -> bool:
    return resources.files("penstock.jvm").joinpath("locks", name).is_file()


def read_lock(name: str) -> Manifest:
    text = resources.files("penstock.jvm").joinpath("locks", name).read_text("ascii")
    return Manifest(tuple(_entry(line) for line in text.splitlines()))


def render_lock(manifest: Manifest) -> str:
    files = sorted(manifest.files, key=lambda entry: entry.path)
    return "".join(f"{entry.sha256} {entry.size:>9} {entry.path}\n" for entry in files)


def _entry(line: str) -> Entry:
    digest, size, path = line.split()
    return Entry(path, int(size), digest)
