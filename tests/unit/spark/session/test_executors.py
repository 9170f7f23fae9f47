"""What is said of executors that lack something."""

import json
from pathlib import Path

import pytest

from penstock.spark.session.executors import _check, _lacks


def test_a_look_imports_everything_and_tells_what_failed_and_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "look_raises.py").write_text("import os\nos.environ['NO_SUCH_VARIABLE']")
    (tmp_path / "look_leaves.py").write_text("raise SystemExit(1)")
    monkeypatch.syspath_prepend(tmp_path)
    (told,) = _check(["json", "look_raises", "look_leaves", "no_such_module"])(iter(()))
    _host, _python, missing = json.loads(told)
    assert missing == {
        "look_raises": "KeyError: 'NO_SUCH_VARIABLE'",
        "look_leaves": "SystemExit: 1",
        "no_such_module": "ModuleNotFoundError: No module named 'no_such_module'",
    }


def test_missing_libraries_are_named_together_and_first() -> None:
    missing = dict.fromkeys(("pyarrow", "msgspec", "shop"), "ModuleNotFoundError")
    error = _lacks("node7", "/usr/bin/python3", missing)
    assert error.problem == "Executors lack msgspec, pyarrow: /usr/bin/python3 on node7 does not find them."
    assert "penstock ship" in error.hint


def test_a_module_that_fails_on_executors_is_named_with_its_reason() -> None:
    error = _lacks("node7", "/usr/bin/python3", {"shop": "KeyError: 'REGION'"})
    assert error.problem == "Executors cannot import shop: KeyError: 'REGION' (/usr/bin/python3 on node7)."
    assert "spark.executorEnv" in error.hint
