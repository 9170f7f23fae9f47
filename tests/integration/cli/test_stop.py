"""`penstock stop`, for runs on both engines."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_helpers import WAIT_SECONDS, MakeTopic, lag, produce, wait_for
from penstock.kafka import Cluster

# More records than any machine handles between the commands, because each one takes a pause.
RECORDS, PAUSE_SECONDS = 20_000, 0.03

SHOP = """
import os, time
from penstock import App

app = App("{app}")

@app.consume("{source}", group="{group}", max_micro_batch=30)
def handle(value: int) -> None:
    time.sleep({pause})
    while {gated} and not os.path.exists("gate"):
        time.sleep(0.01)
"""


class Shop:
    """Runs of an app, and commands that see only these runs."""

    def __init__(self, folder: Path, brokers: str, group: str, source: str) -> None:
        self.folder, self.group, self.source, self.app = folder, group, source, f"app-{group}"
        self._environment = {**os.environ, "PENSTOCK_BROKERS": brokers, "PENSTOCK_HOME": str(folder / "home")}
        self.processes: list[subprocess.Popen[Any]] = []

    def run(self, *, engine: str, pause: float = 0, gated: bool = False) -> "subprocess.Popen[str]":
        """``gated``: no record finishes before the file ``gate`` exists."""
        code = SHOP.format(app=self.app, group=self.group, source=self.source, pause=pause, gated=gated)
        (self.folder / "shop.py").write_text(code)
        self.processes.append(
            subprocess.Popen(
                [sys.executable, "-m", "penstock", "run", "shop:app", "--engine", engine, "--events", "events.jsonl"],
                cwd=self.folder,
                env=self._environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )
        return self.processes[-1]

    def stop(self, *arguments: str) -> tuple[int, str, str]:
        command = self.begin_to_stop(*arguments)
        out, err = command.communicate(timeout=WAIT_SECONDS)
        return command.returncode, out, err

    def begin_to_stop(self, *arguments: str) -> "subprocess.Popen[str]":
        self.processes.append(
            subprocess.Popen(
                [sys.executable, "-m", "penstock", "stop", *arguments],
                cwd=self.folder,
                env=self._environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return self.processes[-1]

    def saw(self, *kinds: str) -> bool:
        file = self.folder / "events.jsonl"
        text = file.read_text() if file.exists() else ""
        return any(f'"event":"{kind}"' in text for kind in kinds)


@pytest.fixture
def shop(tmp_path: Path, brokers: str, group: str, make_topic: MakeTopic) -> Iterator[Shop]:
    shop = Shop(tmp_path, brokers, group, make_topic())
    yield shop
    for process in shop.processes:
        process.kill()
        process.wait()


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_run_is_listed_and_stopped_cleanly_by_the_name_of_its_group(
    shop: Shop, brokers: str, cluster: Cluster, engine: str
) -> None:
    produce(brokers, shop.source, range(RECORDS))
    process = shop.run(engine=engine, pause=PAUSE_SECONDS)
    wait_for(lambda: shop.saw("finished", "batch_finished"), "some work")
    code, out, _ = shop.stop("--json")
    (listed,) = json.loads(out)["running"]
    assert code == 0
    assert (listed["app"], listed["engine"], listed["groups"]) == (shop.app, engine, [shop.group])
    assert listed["pid"] == process.pid
    code, out, err = shop.stop(shop.group)
    assert (code, process.wait(WAIT_SECONDS)) == (0, 0), err
    assert f"Waiting for {shop.app} (process {process.pid}, {engine} engine)" in err
    handled = RECORDS - lag(cluster, shop.group, shop.source)
    assert 0 < handled < RECORDS
    assert out.startswith(f"{shop.app} (process {process.pid}) stopped cleanly: {handled:,} read, 0 written")
    assert "No app is running" in shop.stop()[1]


def test_stopping_an_app_that_does_not_run_is_an_error_that_names_those_that_do(shop: Shop, brokers: str) -> None:
    code, _, err = shop.stop("nobody")
    assert (code, "`penstock run` runs no app on this machine" in err) == (1, True)
    produce(brokers, shop.source, [1])
    shop.run(engine="local", gated=True)
    wait_for(lambda: shop.saw("dispatched"), "a record in progress")
    code, _, err = shop.stop("nobody")
    assert code == 1
    assert "No running app, group or process is called 'nobody'." in err
    assert f"These apps are running: {shop.app}." in err
    assert shop.app in shop.stop()[1]


def test_a_run_that_takes_longer_to_stop_is_not_signalled_twice(shop: Shop, brokers: str) -> None:
    produce(brokers, shop.source, [1])
    process = shop.run(engine="local", gated=True)
    wait_for(lambda: shop.saw("dispatched"), "a record in progress")
    code, _, err = shop.stop(shop.app, "--timeout", "100ms")
    assert (code, f"kill -9 {process.pid}" in err) == (1, True)
    wait_for(lambda: shop.saw("stopping"), "the clean stop to begin")
    again = shop.begin_to_stop(str(process.pid))
    assert again.stderr is not None
    assert "Waiting for" in again.stderr.readline()
    (shop.folder / "gate").touch()
    out, _ = again.communicate(timeout=WAIT_SECONDS)
    # A second signal would have ended it at once, with another code.
    assert (again.returncode, process.wait(WAIT_SECONDS)) == (0, 0)
    assert "stopped cleanly: 1 read" in out
