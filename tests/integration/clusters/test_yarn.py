"""Apps on a real YARN: executors run in its containers, and so does the driver if spark-submit asks for it."""

import json
import sys
from pathlib import Path

import pytest

from jvms import QUICK_OPTIONS
from kafka_helpers import lag, produce
from penstock.jvm.installed_spark import pyspark_jars
from penstock.kafka import Cluster
from shipped_app import RECORDS, Shop
from yarn import YarnCluster

# Each test starts a driver, and executors with their own Python workers.
pytestmark = pytest.mark.long

# Without the first setting, each run would copy Spark to each container.
SMALL = {
    "spark.yarn.jars": f"local:{pyspark_jars()}/*",
    "spark.executor.memory": "512m",
    "spark.executor.instances": "1",
    "spark.yarn.am.memory": "512m",
    "spark.pyspark.python": sys.executable,
    "spark.executor.extraJavaOptions": QUICK_OPTIONS,
    "spark.yarn.am.extraJavaOptions": QUICK_OPTIONS,
}


def test_executors_are_containers_and_get_the_app_shipped(shop: Shop, yarn: YarnCluster, cluster: Cluster) -> None:
    shop.environment["HADOOP_CONF_DIR"] = str(yarn.folder)
    produce(shop.brokers, shop.source, [-1])
    conf = [part for name, value in SMALL.items() for part in ("--spark-conf", f"{name}={value}")]
    done = shop.penstock(
        "run", "shop:app", "--engine", "spark", "--master", "yarn", *conf, "--until-caught-up", "--json"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (stopped,) = json.loads(done.stdout)["stopped"]
    assert (stopped["read"], stopped["written"], stopped["dead_lettered"]) == (RECORDS + 1, RECORDS, 1)
    outputs = shop.outputs()
    assert sorted(int(value) for value, *_ in outputs) == [2 * number for number in range(RECORDS)]
    assert all(".zip/" in late and ".zip/" in penstocks for _, late, penstocks, _ in outputs), (
        "it was imported from elsewhere"
    )
    assert all("/container_" in late for _, late, *_ in outputs), "it was not handled in a container"
    assert lag(cluster, shop.group, shop.source) == 0


def test_the_driver_may_be_a_container_too(shop: Shop, yarn: YarnCluster, cluster: Cluster, tmp_path: Path) -> None:
    shop.environment["HADOOP_CONF_DIR"] = str(yarn.folder)
    archive, main = tmp_path / "shop.zip", tmp_path / "main.py"
    assert shop.penstock("ship", "shop:app", "-o", str(archive)).returncode == 0
    main.write_text("from penstock.cli import main\n\nmain()\n")
    settings = {
        **SMALL,
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": QUICK_OPTIONS,
        "spark.yarn.appMasterEnv.PENSTOCK_HOME": str(tmp_path / "home"),
    }
    conf = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    done = shop.call(
        pyspark_jars().parent / "bin" / "spark-submit", "--master", "yarn", "--deploy-mode", "cluster",
        "--py-files", archive, *conf,
        main, "run", "shop:app", "--engine", "spark", "--until-caught-up", "--brokers", shop.brokers,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    outputs = shop.outputs()
    assert sorted(int(value) for value, *_ in outputs) == [2 * number for number in range(RECORDS)]
    assert all("shop.zip/" in late and "/container_" in late for _, late, *_ in outputs)
    assert lag(cluster, shop.group, shop.source) == 0


def test_more_than_a_container_may_have_is_one_clear_error(shop: Shop, yarn: YarnCluster) -> None:
    shop.environment["HADOOP_CONF_DIR"] = str(yarn.folder)
    conf = ("--spark-conf", "spark.executor.memory=64g")
    done = shop.penstock("run", "shop:app", "--engine", "spark", "--master", "yarn", *conf, "--json")
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["type"]) == (3, "ServerError")
    assert error["problem"].startswith("Spark did not start on 'yarn': ")
    assert "Required executor memory (65536 MB)" in error["problem"]
