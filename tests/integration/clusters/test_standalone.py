"""Apps on a real cluster: their code is shipped, and missing libraries of executors are reported first.

The processes of the cluster have neither the app's folder nor this process's Python path. So an app that runs there was
shipped.
"""

import json
import sys
import sysconfig
import tarfile
import venv
from pathlib import Path

import pytest

from kafka_helpers import lag, produce
from penstock.jvm.installed_spark import pyspark_jars
from penstock.kafka import Cluster
from shipped_app import RECORDS, Shop
from standalone import StandaloneCluster

# Each test starts a driver, and executors with their own Python workers.
pytestmark = pytest.mark.long

SMALL = ("--spark-conf", "spark.executor.memory=512m")
# An executor is a JVM with its own Python workers. Tests start one where a second one would prove nothing more.
ONE_EXECUTOR = (*SMALL, "--spark-conf", "spark.cores.max=1")


@pytest.fixture
def bare_python(tmp_path: Path) -> str:
    """The same Python, with nothing installed."""
    venv.create(tmp_path / "bare", symlinks=True)
    return str(tmp_path / "bare" / "bin" / "python")


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A packed environment as venv-pack makes it, except that it links the libraries of this one."""
    folder, archive = tmp_path / "packed", tmp_path / "environment.tar.gz"
    venv.create(folder, symlinks=True)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    (site_packages / "here.pth").write_text(sysconfig.get_paths()["purelib"])
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, arcname=".")
    return archive


def test_an_app_in_a_separate_folder_runs_on_executors_that_do_not_have_it(
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
    assert all(".zip/" in late and ".zip/" in penstocks for _, late, penstocks, _ in outputs), (
        "it was imported from elsewhere"
    )
    assert all(python.endswith("/environment/bin/python") for *_, python in outputs)
    assert lag(cluster, shop.group, shop.source) == 0


def test_executors_without_a_library_are_reported_before_the_first_record(
    shop: Shop, standalone: StandaloneCluster, cluster: Cluster, bare_python: str
) -> None:
    done = shop.penstock(
        "run", "shop:app", "--engine", "spark", "--master", standalone.master, *ONE_EXECUTOR,
        "--spark-conf", f"spark.pyspark.python={bare_python}",
    )  # fmt: skip
    assert done.returncode == 3, done.stdout + done.stderr
    problem, hint = done.stderr.strip().splitlines()[-2:]
    assert problem.startswith("error: Executors lack confluent_kafka, msgspec, pandas, platformdirs, pyarrow: ")
    assert bare_python in problem
    assert "penstock ship" in hint
    assert lag(cluster, shop.group, shop.source) == RECORDS


def test_a_cluster_without_enough_memory_is_reported_after_the_configured_wait(
    shop: Shop, standalone: StandaloneCluster
) -> None:
    done = shop.penstock(
        "run", "shop:app", "--engine", "spark", "--master", standalone.master, "--json",
        "--spark-conf", "spark.executor.memory=64g", "--spark-conf", "spark.penstock.executors.wait=1s",
    )  # fmt: skip
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["type"]) == (3, "ServerError")
    assert error["problem"] == f"Spark on '{standalone.master}' started no executor within 1 s."
    assert "spark.executor.memory" in error["hint"]


def test_a_master_that_is_not_there_is_one_clear_error(shop: Shop) -> None:
    done = shop.penstock("run", "shop:app", "--engine", "spark", "--master", "spark://127.0.0.1:1", "--json")
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["type"]) == (3, "ServerError")
    assert error["problem"] == "No Spark master answers at 'spark://127.0.0.1:1': connection refused."


def test_an_archive_of_ship_runs_under_spark_submit(
    shop: Shop, standalone: StandaloneCluster, cluster: Cluster, tmp_path: Path
) -> None:
    archive, elsewhere = tmp_path / "shop.zip", tmp_path / "elsewhere"
    written = json.loads(shop.penstock("ship", "shop:app", "-o", str(archive), "--json").stdout)
    assert written["archive"] == str(archive)
    assert written["modules"] == ["shop", "shop_late", "shop_parts"]
    elsewhere.mkdir()
    (elsewhere / "main.py").write_text("from penstock.cli import main\n\nmain()\n")
    done = shop.call(
        pyspark_jars().parent / "bin" / "spark-submit", "--master", standalone.master, "--py-files", archive,
        "--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.executor.memory=512m",
        "--conf", "spark.cores.max=1", "--conf", f"spark.pyspark.python={sys.executable}",
        "main.py", "run", "shop:app", "--engine", "spark", "--until-caught-up", "--json",
        cwd=elsewhere,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout.strip().splitlines()[-1])["stopped"][0]["written"] == RECORDS
    assert all("shop.zip/" in late and "shop.zip/" in penstocks for _, late, penstocks, _ in shop.outputs())
    assert lag(cluster, shop.group, shop.source) == 0
