"""`penstock run --reload` on a real broker.

Each change of the code starts it again, and no record is lost or repeated.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_helpers import WAIT_SECONDS, MakeTopic, committed, produce, read_values, wait_for
from penstock.kafka import Cluster

SHOP = """
from pathlib import Path
from penstock import App

Path("version-{version}").touch()

app = App("{group}")

@app.consume("{source}", to="{out}")
def handle(value: int) -> str:
    return f"{{value}} by {version}"
"""


@pytest.fixture
def shop(tmp_path: Path, brokers: str) -> Iterator["subprocess.Popen[bytes]"]:
    environment = {**os.environ, "PENSTOCK_BROKERS": brokers, "PENSTOCK_HOME": str(tmp_path / "home")}
    (tmp_path / "shop.py").write_text("")
    with (tmp_path / "said").open("w") as said:
        command = [sys.executable, "-m", "penstock", "run", "--reload", "shop:app"]
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=said)
    yield process
    process.terminate()
    process.wait(WAIT_SECONDS)


def test_each_version_of_the_code_continues_where_the_last_one_stopped(
    brokers: str,
    group: str,
    cluster: Cluster,
    make_topic: MakeTopic,
    shop: "subprocess.Popen[bytes]",
    tmp_path: Path,
) -> None:
    source, out = make_topic(), make_topic()

    def change(text: str) -> None:
        (tmp_path / "draft").write_text(text)
        (tmp_path / "draft").rename(tmp_path / "shop.py")

    def said(line: str) -> bool:
        return line in " ".join((tmp_path / "said").read_text().split())

    wait_for(lambda: said("The app ended with exit code 2. Waiting until"), "an app without handlers")
    expected = []
    for version in range(3):
        change(SHOP.format(group=group, source=source, out=out, version=version))
        wait_for((tmp_path / f"version-{version}").exists, f"version {version}")  # the one before has stopped
        values = range(10 * version, 10 * version + 10)
        produce(brokers, source, values)
        expected += [f"{value} by {version}".encode() for value in values]
        wait_for(lambda: len(read_values(brokers, out)) == len(expected), f"version {version}")  # noqa: B023
    shop.send_signal(signal.SIGINT)
    assert shop.wait(WAIT_SECONDS) == 0
    assert read_values(brokers, out) == expected
    assert committed(cluster, group, source) == {0: len(expected)}


def test_reload_is_refused_for_runs_with_an_end(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "penstock", "run", "shop:app", "--reload", "--until-caught-up"]
    refused = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "--reload cannot be combined with --until-caught-up" in refused.stderr
