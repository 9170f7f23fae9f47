"""Runs find each other by their files, but only runs that are alive."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from penstock.core.reports.events import Stopped, Stopping
from penstock.core.reports.record_counts import Counts
from penstock.errors import ServerError
from penstock.ops.runs import alive, look_again, recent, registered
from penstock.paths import run_file, run_socket, runs_folder

STOPPED = Stopped(group="g", handler="h", read=5, written=4, dead_lettered=1, skipped=0, seconds=1.0)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))


def never(reason: str) -> None:
    pytest.fail(reason)


def test_a_run_is_found_by_its_app_its_groups_and_its_process_while_it_lasts() -> None:
    with registered("shop", engine="spark", groups=["orders", "orders", "returns"], warn=never) as hear:
        (run,) = alive()
        assert (run.app, run.engine, run.groups, run.pid) == ("shop", "spark", ("orders", "returns"), os.getpid())
        for name in ("shop", "orders", "returns", str(os.getpid())):
            assert alive(name) == [run]
        assert alive("nobody") == []
        assert (alive(engine="spark"), alive(engine="local")) == ([run], [])
        assert not run.stopping
        hear(Stopping(group="orders", handler="h", reason="asked to"))
        assert alive()[0].stopping
        hear(STOPPED)
        hear(STOPPED)
    assert alive() == []
    ending = look_again(run).ending
    assert ending is not None
    assert (ending.problem, ending.counts) == (None, Counts(10, 8, 2, 0))


def test_an_error_is_kept_as_the_reason() -> None:
    runs = []

    def run() -> None:
        with registered("shop", engine="local", groups=["g"], warn=never):
            runs.extend(alive())
            raise ServerError("No Kafka.")

    with pytest.raises(ServerError):
        run()
    ending = look_again(runs[0]).ending
    assert ending is not None
    assert ending.problem == "No Kafka."


def test_an_error_that_is_no_text_for_a_file_stays_the_error_of_the_run() -> None:
    problem = "The record says half \ud83d."
    with (
        pytest.raises(ServerError, match="half"),
        registered("shop", engine="local", groups=["g"], warn=never),
    ):
        raise ServerError(problem)
    (run,) = recent()
    assert run.ending is not None
    assert run.ending.problem == "The record says half ?."


def test_a_process_that_is_gone_or_another_one_is_no_run() -> None:
    with registered("shop", engine="local", groups=["g"], warn=never):
        (path,) = runs_folder().iterdir()
        mine = json.loads(path.read_text())
        gone = subprocess.Popen([sys.executable, "-c", ""])
        gone.wait()
        for name, pid, born in (("gone", gone.pid, mine["born"]), ("stranger", os.getppid(), mine["born"] - 1e9)):
            (runs_folder() / f"{name}.json").write_text(json.dumps({**mine, "app": name, "pid": pid, "born": born}))
        (runs_folder() / "elsewhere.json").write_text(json.dumps({**mine, "app": "elsewhere", "host": "moon"}))
        (runs_folder() / "broken.json").write_text("{")
        assert [run.app for run in alive()] == ["shop"]


def test_the_next_run_deletes_runs_that_were_killed_or_ended_long_ago() -> None:
    with registered("shop", engine="local", groups=["g"], warn=never):
        (path,) = runs_folder().iterdir()
        mine = json.loads(path.read_text())
    dead = {**mine, "born": mine["born"] - 1_000}
    (runs_folder() / "killed.json").write_text(json.dumps(dead))
    ended = {"at": mine["born"] - 90_000, "problem": None, "counts": {}}
    (runs_folder() / "ended.json").write_text(json.dumps({**dead, "ending": ended}))
    with registered("shop", engine="local", groups=["g"], warn=never):
        assert {path.stem for path in runs_folder().iterdir()} == {str(os.getpid())}


def test_the_next_run_deletes_the_sockets_of_killed_runs(tmp_path: Path) -> None:
    with registered("shop", engine="local", groups=["g"], warn=never):
        mine = json.loads(run_file(os.getpid()).read_text())
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    # The second one is from a folder that was made for it, because its path would have been too long.
    elsewhere = tmp_path / "penstock-x1"
    elsewhere.mkdir()
    own, dead, far = run_socket(os.getpid()), run_socket(gone.pid), elsewhere / f"{gone.pid}.sock"
    for socket in (own, dead, far):
        socket.touch()
    for pid, name, socket in ((os.getpid(), "reused", own), (gone.pid, "killed", dead), (gone.pid, "far", far)):
        entry = {**mine, "pid": pid, "born": mine["born"] - 1_000, "ending": None, "socket": str(socket)}
        (runs_folder() / f"{name}.json").write_text(json.dumps(entry))
    with registered("shop", engine="local", groups=["g"], warn=never, socket=str(own)):
        assert own.exists(), "this process has the id of a killed run, and listens here"
        assert not dead.exists()
        assert not elsewhere.exists()


def test_a_folder_that_cannot_be_written_is_only_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "file"))
    said: list[str] = []
    with registered("shop", engine="local", groups=["g"], warn=said.append) as hear:
        hear(Stopping(group="g", handler="h", reason="asked to"))
    assert "`penstock stop` will not find this run" in said[0]
    assert alive() == []


def test_the_birth_of_a_process_is_the_systems_word() -> None:
    with registered("shop", engine="local", groups=["g"], warn=never):
        assert alive()[0].process == psutil.Process()
