"""The folder of a table, on any file system that Spark can reach."""

import re
from pathlib import Path

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


def absolute(folder: str) -> str:
    """Return the folder as a URL; a plain path is on this machine."""
    return folder if _URL.match(folder) else Path(folder).expanduser().resolve().as_uri()


def table_folder(folder: str, name: str) -> str:
    return "/".join([absolute(folder).rstrip("/"), *name.split(".")])
