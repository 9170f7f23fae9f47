"""Spark sessions that start quickly, keep quiet and end completely."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkConf
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.jvm.coordinates import kafka_connector
from penstock.jvm.ivy import pyspark_jars
from penstock.jvm.jars import resolve
from penstock.jvm.java import find_java
from penstock.spark.failures import not_a_master, session_error
from penstock.spark.gateway import end_context, python_path, start_context
from penstock.spark.places import log_file

DEFAULT_MASTER = "local[*]"
_LOOPBACK = "127.0.0.1"
_MASTER = re.compile(r"local|local\[(\*|\d+)(,\s*\d+)?\]|local-cluster\[.+\]|yarn|(spark|k8s)://.+")


@contextmanager
def spark_session(name: str, *, master: str | None = None) -> Iterator[SparkSession]:
    """A session for the block; afterwards its JVM and its Python workers are gone."""
    session = start_session(name, master=master)
    try:
        yield session
    finally:
        end_session(session)


def start_session(name: str, *, master: str | None = None) -> SparkSession:
    master = _checked(master or DEFAULT_MASTER)
    find_java()
    log = log_file()
    conf = SparkConf(loadDefaults=False).setAll(list(_options(name, master).items()))
    try:
        context = start_context(conf, log=log, environment=_environment(master, log))
        try:
            return SparkSession(context)
        except BaseException:
            end_context(context)
            raise
    except (PySparkException, Py4JError, ConnectionError) as error:
        raise session_error(error, master) from error


def end_session(session: SparkSession) -> None:
    end_context(session.sparkContext)


def _checked(master: str) -> str:
    if not _MASTER.fullmatch(master):
        raise not_a_master(master)
    return master


def _options(name: str, master: str) -> dict[str, str]:
    options = {
        "spark.master": master,
        "spark.app.name": f"penstock {name}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        # Hive's would look for a database first.
        "spark.sql.catalogImplementation": "in-memory",
        "spark.executorEnv.PYTHONPATH": python_path(),
    }
    jars = _connector_jars()
    if not _is_local(master):
        return {**options, "spark.jars": ",".join(jars)}
    # On the class path they are there from the start; as spark.jars each is copied first, for executors elsewhere.
    return {
        **options,
        "spark.driver.extraClassPath": os.pathsep.join(jars),
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
    }


def _connector_jars() -> list[str]:
    """The jars of the Kafka connector that PySpark does not have itself."""
    brought = {path.name for path in pyspark_jars().iterdir()}
    return [str(path) for path in resolve(kafka_connector()) if path.name not in brought]


def _environment(master: str, log: Path) -> dict[str, str]:
    """For the JVM, which hands it on to the Python workers."""
    environment = {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": python_path(),
        "LOG4J_CONFIGURATION_FILE": str(resources.files("penstock.spark") / "log4j2.xml"),
        "PENSTOCK_SPARK_LOG": str(log),
    }
    return {**environment, "SPARK_LOCAL_IP": _LOOPBACK} if _is_local(master) else environment


def _is_local(master: str) -> bool:
    return master.startswith("local")
