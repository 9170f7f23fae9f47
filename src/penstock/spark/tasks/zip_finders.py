"""Makes tasks start sooner where the import path has zip archives, such as PySpark itself on Spark's workers."""

import sys
from zipimport import zipimporter


def forget_zip_finders() -> None:
    """Remove the import finders of zip archives; the next import makes them again, from a cache.

    Before each task, PySpark calls ``importlib.invalidate_caches``. On Python 3.11 and 3.12, each of these finders then
    reads the directory of its archive again. For PySpark's own archive that takes longer than all else that a small
    task does.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            sys.path_importer_cache.pop(path, None)
