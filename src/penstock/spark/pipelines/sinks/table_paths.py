"""The folder of a table, on any file system that Spark can reach."""

import re
from pathlib import Path

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


def absolute(folder: str) -> str:
    """Return the folder as Hadoop writes it; a plain path is on this machine.

    Hadoop decodes no escapes: the folder ``a%20b`` of a URL would be another one than ``a b``.
    """
    return folder if _URL.match(folder) else f"file://{Path(folder).expanduser().resolve().as_posix()}"


def table_folder(folder: str, name: str) -> str:
    return "/".join([absolute(folder).rstrip("/"), *name.split(".")])
