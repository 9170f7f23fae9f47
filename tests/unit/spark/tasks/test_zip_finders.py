"""Between tasks, the import path's zip archives are not read again."""

import importlib
import sys
import zipfile
import zipimport
from pathlib import Path

import pytest

from penstock.spark.tasks.zip_finders import forget_zip_finders


def test_an_archive_is_not_read_again_before_the_next_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "modules.zip"
    with zipfile.ZipFile(archive, "w") as written:
        written.writestr("first_of_zip.py", "NUMBER = 1")
        written.writestr("second_of_zip.py", "NUMBER = 2")
    monkeypatch.syspath_prepend(str(archive))
    assert importlib.import_module("first_of_zip").NUMBER == 1
    finders = [each for each in sys.path_importer_cache.values() if isinstance(each, zipimport.zipimporter)]

    forget_zip_finders()
    read_again: list[str] = []
    for finder in finders:
        monkeypatch.setattr(type(finder), "invalidate_caches", lambda each: read_again.append(each.archive))
    importlib.invalidate_caches()

    assert read_again == []
    assert importlib.import_module("second_of_zip").NUMBER == 2
