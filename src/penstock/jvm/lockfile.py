"""Lock files: each line has the SHA-256, the size and the Maven path of one file of a set.

With a lock nothing has to be resolved, and the set never changes. ``python -m penstock.jvm.update_locks`` writes locks.
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
