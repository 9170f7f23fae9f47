"""Errors about executors that lack something."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from penstock.spark.session.executors import _bounded, _check, _lacks


def test_a_check_imports_everything_and_reports_what_failed_and_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "look_raises.py").write_text("import os\nos.environ['NO_SUCH_VARIABLE']")
    (tmp_path / "look_leaves.py").write_text("raise SystemExit(1)")
    monkeypatch.syspath_prepend(tmp_path)
    (reported,) = _check(["json", "look_raises", "look_leaves", "no_such_module"])(iter(()))
    _host, _python, missing = json.loads(reported)
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


class Context:
    """The part of a Spark context that jobs with a tag need. A job that starts late misses the first cancellation."""

    def __init__(self) -> None:
        self.tags: list[str] = []
        self.cancelled: list[str] = []
        self.twice = threading.Event()

    def addJobTag(self, tag: str) -> None:  # noqa: N802 - Spark's name
        self.tags.append(tag)

    def removeJobTag(self, tag: str) -> None:  # noqa: N802
        self.tags.remove(tag)

    def cancelJobsWithTag(self, tag: str) -> None:  # noqa: N802
        self.cancelled.append(tag)
        if len(self.cancelled) > 1:
            self.twice.set()


def test_a_check_that_starts_its_job_late_is_cancelled_too() -> None:
    context: Any = Context()
    timed_out = threading.Event()
    with _bounded(context, 0.0, timed_out):
        assert context.twice.wait(60), "only one cancellation"
    assert timed_out.is_set()
    assert context.tags == []


def test_a_check_in_time_is_not_cancelled() -> None:
    context: Any = Context()
    timed_out = threading.Event()
    with _bounded(context, 600.0, timed_out):
        pass
    assert (timed_out.is_set(), context.cancelled, context.tags) == (False, [], [])
