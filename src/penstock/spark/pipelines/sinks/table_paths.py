"""Where a table's files are, on whatever file system Spark can reach."""

import re
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


def absolute(folder: str) -> str:
    """As it is seen from everywhere; a plain path is one of this machine."""
    return folder if _URL.match(folder) else Path(folder).expanduser().resolve().as_uri()


def table_folder(folder: str, name: str) -> str:
    return "/".join([absolute(folder).rstrip("/"), *name.split(".")])


class Files:
    """Hadoop's file system behind a path."""

    def __init__(self, session: SparkSession, folder: str) -> None:
        self._jvm: Any = session._jvm  # noqa: SLF001 - Hadoop's own files have no other door
        self._system = self._path(folder).getFileSystem(session._jsparkSession.sessionState().newHadoopConf())  # noqa: SLF001

    def exists(self, path: str) -> bool:
        return bool(self._system.exists(self._path(path)))

    def move(self, source: str, target: str) -> bool:
        return bool(self._system.rename(self._path(source), self._path(target)))

    def remove(self, path: str) -> None:
        self._system.delete(self._path(path), True)  # noqa: FBT003 - with all that is in it

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)
