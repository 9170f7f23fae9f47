"""Where Penstock keeps its files, with and without ``PENSTOCK_HOME`` and ``PENSTOCK_CACHE``."""

from collections.abc import Callable
from pathlib import Path

import pytest
from platformdirs import user_cache_path, user_data_path, user_log_path, user_state_path

from penstock import paths

_STATE, _CACHE = user_state_path("penstock"), user_cache_path("penstock")

_CASES: list[tuple[Callable[[], Path], Path, str]] = [
    (paths.state_home, _STATE, "home"),
    (paths.embedded_home, user_data_path("penstock") / "kafka", "home"),
    (paths.runs_folder, _STATE / "runs", "home/runs"),
    (lambda: paths.run_file(7), _STATE / "runs/7.json", "home/runs/7.json"),
    (lambda: paths.run_socket(7), _STATE / "runs/7.sock", "home/runs/7.sock"),
    (
        lambda: paths.rebalance_history_file(7, 12.3),
        _STATE / "runs/7-12.rebalances.jsonl",
        "home/runs/7-12.rebalances.jsonl",
    ),
    (lambda: paths.spark_activity_path(7, 12.3), _STATE / "runs/7-12.spark", "home/runs/7-12.spark"),
    (lambda: paths.audit_file("c"), _STATE / "audit/c.jsonl", "home/audit/c.jsonl"),
    (paths.offset_backups_root, _STATE / "offsets", "home/offsets"),
    (paths.checkpoint_root, _STATE / "checkpoints", "home/checkpoints"),
    (paths.spark_log_file, user_log_path("penstock") / "spark.log", "home/logs/spark.log"),
    (paths.cache_home, _CACHE, "cache"),
    (paths.jar_cache, _CACHE / "jars", "cache/jars"),
    (paths.class_archives, _CACHE / "classes", "cache/classes"),
]


@pytest.mark.parametrize(("path", "by_default", "moved"), _CASES)
def test_each_path_is_a_folder_of_the_user_until_a_variable_moves_it(
    path: Callable[[], Path], by_default: Path, moved: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for variable in (paths.HOME_VARIABLE, paths.CACHE_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    assert path() == by_default
    monkeypatch.setenv(paths.HOME_VARIABLE, str(tmp_path / "home"))
    monkeypatch.setenv(paths.CACHE_VARIABLE, str(tmp_path / "cache"))
    assert path() == tmp_path / moved


def test_a_tilde_is_the_users_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(paths.HOME_VARIABLE, "~/penstock")
    monkeypatch.setenv(paths.CACHE_VARIABLE, "~/cache")
    assert paths.state_home() == (Path.home() / "penstock").resolve()
    assert paths.embedded_home() == Path.home() / "penstock"
    assert paths.jar_cache() == Path.home() / "cache" / "jars"
