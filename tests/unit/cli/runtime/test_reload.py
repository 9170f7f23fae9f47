"""`penstock run --reload` and its runs, which are small programs here that record their signals."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_helpers import wait_for
from penstock.cli.runtime.reload import sources

RELOADER = """
import sys
from pathlib import Path
from penstock.cli.runtime.reload import Reloader, sources

command = [sys.executable, "shop.py"]
sys.exit(Reloader(command, look=lambda: sources(Path.cwd()), say=lambda line: print(line, flush=True)).run())
"""
# Runs until a signal stops it, and records the signal.
SHOP = """
import signal, sys, time

heard = []
for each in (signal.SIGTERM, signal.SIGINT):
    signal.signal(each, lambda number, _: heard.append(signal.Signals(number).name))
with open("notes", "a") as notes:
    print("started", file=notes, flush=True)
    while not heard:
        time.sleep(0.01)
    print(*heard, file=notes, flush=True)
sys.exit({code})
"""


class Reloading:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._changes = 0
        self.change(SHOP.format(code=0))
        with (folder / "said").open("w") as said:
            self._process = subprocess.Popen([sys.executable, "-c", RELOADER], cwd=folder, stdout=said)

    def change(self, text: str) -> None:
        """Write it at once. Otherwise the run might start with half of it."""
        self._changes += 1
        draft = self._folder / "draft"
        draft.write_text(f"# {self._changes}\n{text}")
        draft.rename(self._folder / "shop.py")

    def await_notes(self, *lines: str) -> None:
        wait_for(lambda: self._read("notes") == [*lines], f"{lines}")

    def await_saying(self, line: str) -> None:
        wait_for(lambda: line in self._read("said"), line)

    def tell(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def exit_code(self) -> int:
        return self._process.wait(300)

    def _read(self, name: str) -> list[str]:
        file = self._folder / name
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def reloading(tmp_path: Path) -> Iterator[Reloading]:
    started = Reloading(tmp_path)
    yield started
    if started._process.poll() is None:
        started.tell(signal.SIGTERM)
        started.exit_code()


def test_a_change_stops_the_run_cleanly_and_starts_it_again(reloading: Reloading) -> None:
    reloading.await_notes("started")
    reloading.change(SHOP.format(code=3))
    reloading.await_notes("started", "SIGTERM", "started")
    reloading.await_saying("shop.py has changed: restarting.")
    reloading.tell(signal.SIGTERM)
    assert reloading.exit_code() == 3, "the exit code of the last run"
    reloading.await_notes("started", "SIGTERM", "started", "SIGTERM")


@pytest.mark.parametrize(
    ("sent", "received"),
    [(signal.SIGINT, "SIGINT"), (signal.SIGTERM, "SIGTERM"), (signal.SIGHUP, "SIGTERM")],
    ids=["Ctrl+C", "SIGTERM", "a closed terminal"],
)
def test_the_run_receives_each_signal_of_the_reloader_once(
    reloading: Reloading, sent: signal.Signals, received: str
) -> None:
    reloading.await_notes("started")
    reloading.tell(sent)
    assert reloading.exit_code() == 0
    reloading.await_notes("started", received)


def test_a_run_that_fails_waits_for_a_change(reloading: Reloading) -> None:
    reloading.await_notes("started")
    reloading.change("import sys; sys.exit(2)")
    reloading.await_saying("The app ended with exit code 2. Waiting until its code changes.")
    reloading.change(SHOP.format(code=0))
    reloading.await_notes("started", "SIGTERM", "started")


def test_ctrl_c_ends_it_while_it_waits_for_a_change(reloading: Reloading) -> None:
    reloading.await_notes("started")
    reloading.change("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    reloading.await_saying("The app ended with exit code 137. Waiting until its code changes.")
    reloading.tell(signal.SIGINT)
    assert reloading.exit_code() == 137


def test_a_run_that_was_stopped_from_outside_is_not_started_again(reloading: Reloading) -> None:
    reloading.await_notes("started")
    reloading.change("")
    assert reloading.exit_code() == 0


def _write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "shop" / "orders.py").write_text("1"),
        lambda folder: (folder / "shop" / "orders.py").unlink(),
        lambda folder: _write(folder / "shop" / "new" / "schema.avsc"),
        lambda folder: (folder.parent / "settings.ini").write_text("1"),
    ],
    ids=["written", "removed", "added", "the file of --config"],
)
def test_these_files_count_as_a_change(tmp_path: Path, change: Callable[[Path], object]) -> None:
    folder, config = tmp_path / "app", tmp_path / "settings.ini"
    for path in (folder / "shop" / "orders.py", config):
        _write(path)
    before = sources(folder, config)
    assert sources(folder, config) == before
    change(folder)
    assert sources(folder, config) != before


@pytest.mark.parametrize("name", [".git/hook.py", "venv/lib/x.py", "shop/__pycache__/a.py", "data.csv"])
def test_these_files_do_not_count_as_a_change(tmp_path: Path, name: str) -> None:
    _write(tmp_path / "venv" / "pyvenv.cfg")
    _write(tmp_path / "shop.py")
    before = sources(tmp_path)
    _write(tmp_path / name)
    assert sources(tmp_path) == before
    assert [path.name for path in before] == ["shop.py"]
