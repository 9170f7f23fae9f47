"""Apps on a real cluster: their code is shipped, and what executors lack is told before a record flows.

The cluster's processes know neither the app's folder nor this process's Python path, so an app that runs there was
shipped. What each task imported it from comes back in the outputs.
"""

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bed import MakeTopic, lag, produce, read_values
from penstock.errors import ConfigError
from penstock.jvm.coordinates import kafka_connector
from penstock.jvm.ivy import pyspark_jars
from penstock.jvm.jars import resolve
from penstock.kafka import Cluster
from penstock.spark.session import spark_session
from standalone import StandaloneCluster

# Each of them starts a driver, and executors with Python workers of their own.
pytestmark = pytest.mark.timeout(300)

RECORDS = 200
SMALL = ("--spark-conf", "spark.executor.memory=512m")

SHOP = """
import sys
import penstock
from penstock import App, Reject
from shop_parts.prices import double

app = App("{group}")

@app.consume("{source}", to="{group}.out", dead_letter="{group}.dlq")
def price(value: int) -> str:
    import shop_late
    if value < 0:
        raise Reject("negative")
    return f"{{double(value)}} {{shop_late.__file__}} {{penstock.__file__}} {{sys.executable}}"
"""
PRICES = """
from importlib import resources

FACTOR = int((resources.files(__package__) / "factor.txt").read_text())

def double(value):
    return value * FACTOR
"""


class Shop:
    """An app in a folder that is on nobody's path."""

    def __init__(self, folder: Path, brokers: str, group: str, source: str) -> None:
        self.folder, self.brokers, self.group, self.source = folder, brokers, group, source
        parts = folder / "shop_parts"
        parts.mkdir(parents=True)
        (folder / "shop.py").write_text(SHOP.format(group=group, source=source))
        (folder / "shop_late.py").write_text("")
        (parts / "__init__.py").write_text("")
        (parts / "prices.py").write_text(PRICES)
        (parts / "factor.txt").write_text("2")

    def penstock(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return self.call(sys.executable, "-m", "penstock", *arguments)

    def call(self, *command: str | Path, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
        environment = {**os.environ, "PENSTOCK_BROKERS": self.brokers}
        return subprocess.run(
            command, cwd=cwd or self.folder, env=environment, capture_output=True, text=True, timeout=240, check=False
        )

    def outputs(self) -> list[list[str]]:
        return [(value or b"").decode().split() for value in read_values(self.brokers, f"{self.group}.out")]


@pytest.fixture
def shop(tmp_path: Path, brokers: str, group: str, make_topic: MakeTopic) -> Shop:
    source = make_topic(4)
    for partition in range(4):
        produce(brokers, source, range(partition, RECORDS, 4), partition=partition)
    return Shop(tmp_path / "somewhere", brokers, group, source)


@pytest.fixture
def bare_python(tmp_path: Path) -> str:
    """The same Python, with nothing installed."""
    venv.create(tmp_path / "bare", symlinks=True)
    return str(tmp_path / "bare" / "bin" / "python")


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A packed one, as venv-pack makes them, but for the libraries, which it has from here."""
    folder, archive = tmp_path / "packed", tmp_path / "environment.tar.gz"
    venv.create(folder, symlinks=True)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    (site_packages / "here.pth").write_text(sysconfig.get_paths()["purelib"])
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, arcname=".")
    return archive


def test_an_app_in_a_folder_of_its_own_runs_on_executors_that_know_nothing_of_it(
    shop: Shop, standalone: StandaloneCluster, cluster: Cluster, environment: Path
) -> None:
    produce(shop.brokers, shop.source, [-1])
    done = shop.penstock(
        "run", "shop:app", "--engine", "spark", "--master", standalone.master, *SMALL, "--until-caught-up", "--json",
        "--spark-conf", f"spark.archives={environment}#environment",
        "--spark-conf", "spark.pyspark.python=./environment/bin/python",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (stopped,) = json.loads(done.stdout)["stopped"]
    assert (stopped["read"], stopped["written"], stopped["dead_lettered"]) == (RECORDS + 1, RECORDS, 1)
    outputs = shop.outputs()
    assert sorted(int(value) for value, *_ in outputs) == [2 * number for number in range(RECORDS)]
    assert all(".zip/" in late and ".zip/" in ours for _, late, ours, _ in outputs), "it was imported from elsewhere"
    assert all(python.endswith("/environment/bin/python") for *_, python in outputs)
    assert lag(cluster, shop.group, shop.source) == 0


def test_executors_without_a_library_are_told_in_one_sentence_before_a_record_flows(
    shop: Shop, standalone: StandaloneCluster, cluster: Cluster, bare_python: str
) -> None:
    done = shop.penstock(
        "run", "shop:app", "--engine", "spark", "--master", standalone.master, *SMALL,
        "--spark-conf", f"spark.pyspark.python={bare_python}",
    )  # fmt: skip
    assert done.returncode == 3, done.stdout + done.stderr
    problem, hint = done.stderr.strip().splitlines()[-2:]
    assert problem.startswith("error: Executors lack confluent_kafka, msgspec, pandas, platformdirs, pyarrow: ")
    assert bare_python in problem
    assert "penstock ship" in hint
    assert lag(cluster, shop.group, shop.source) == RECORDS


def test_a_cluster_without_room_is_told_after_the_wait_that_was_asked_for(
    shop: Shop, standalone: StandaloneCluster
) -> None:
    done = shop.penstock(
        "run", "shop:app", "--engine", "spark", "--master", standalone.master, "--json",
        "--spark-conf", "spark.executor.memory=64g", "--spark-conf", "spark.penstock.executors.wait=1s",
    )  # fmt: skip
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["type"]) == (3, "ServerError")
    assert error["problem"] == f"Spark on '{standalone.master}' gave no executor within 1 s."
    assert "spark.executor.memory" in error["hint"]


def test_a_master_that_is_not_there_is_one_clear_error(shop: Shop) -> None:
    done = shop.penstock("run", "shop:app", "--engine", "spark", "--master", "spark://127.0.0.1:1", "--json")
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["type"]) == (3, "ServerError")
    assert error["problem"] == "No Spark master answers at 'spark://127.0.0.1:1': connection refused."


def test_a_session_that_runs_in_this_process_is_used_and_left_running(spark: SparkSession) -> None:
    with spark_session("test") as session:
        assert session.sparkContext is spark.sparkContext
    assert spark.range(3).count() == 3
    with pytest.raises(ConfigError, match="runs in this process already"), spark_session("test", master="local[1]"):
        pass


def test_what_ship_writes_runs_under_spark_submit(
    shop: Shop, standalone: StandaloneCluster, cluster: Cluster, tmp_path: Path
) -> None:
    archive, elsewhere = tmp_path / "shop.zip", tmp_path / "elsewhere"
    written = json.loads(shop.penstock("ship", "shop:app", "-o", str(archive), "--json").stdout)
    assert written["archive"] == str(archive)
    assert written["modules"] == ["shop", "shop_late", "shop_parts"]
    elsewhere.mkdir()
    (elsewhere / "main.py").write_text("from penstock.cli import main\n\nmain()\n")
    brought = {path.name for path in pyspark_jars().iterdir()}
    jars = ",".join(str(path) for path in resolve(kafka_connector()) if path.name not in brought)
    done = shop.call(
        pyspark_jars().parent / "bin" / "spark-submit", "--master", standalone.master, "--py-files", archive,
        "--jars", jars, "--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.executor.memory=512m",
        "--conf", f"spark.pyspark.python={sys.executable}",
        "main.py", "run", "shop:app", "--engine", "spark", "--until-caught-up", "--json",
        cwd=elsewhere,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout.strip().splitlines()[-1])["stopped"][0]["written"] == RECORDS
    assert all("shop.zip/" in late and "shop.zip/" in ours for _, late, ours, _ in shop.outputs())
    assert lag(cluster, shop.group, shop.source) == 0
