"""Starts and ends Spark sessions. They start fast, print nothing, and leave no process behind."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import resources
from pathlib import Path

from pyspark import SparkConf
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.errors import ConfigError, SetupError
from penstock.jvm.class_archive import archive_flags
from penstock.jvm.coordinates import Coordinates, kafka_connector, spark_package
from penstock.jvm.installed_spark import INSTALL_SPARK, not_in_spark, one_of_each, pyspark_jars, spark_version
from penstock.jvm.jars import resolve
from penstock.jvm.java_runtime import find_java
from penstock.jvm.progress_callback import ProgressCallback, silent
from penstock.paths import spark_log_file
from penstock.spark.driver.spark_errors import session_error
from penstock.spark.internals import JvmError, is_connect, is_submitted, running_context
from penstock.spark.session.gateway import end_context, join_submitted, python_path, start_context
from penstock.spark.session.masters import (
    DEFAULT_MASTER,
    LOOPBACK,
    check_master,
    is_connect_url,
    is_local,
    is_on_this_machine,
)
from penstock.spark.session.spark_conf import checked_conf, session_conf

# Not every Maven registry has this package. Without it Penstock decodes Protobuf in Python (``protobuf_columns.py``).
OPTIONAL_PACKAGE = "protobuf"
_missing: set[Coordinates] = set()

# With these, Spark's launcher adds folders to the class path, and Java's class archives work only with jars.
_CLASS_PATH_VARIABLES = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH")


@contextmanager
def spark_session(
    name: str, *, master: str | None = None, conf: Mapping[str, str] | None = None, packages: Iterable[str] | None = ()
) -> Iterator[SparkSession]:
    """Return a session for the block: the one that runs in this process, spark-submit's, or a new one.

    Leaves a session that was there before running. Ends a new one, with its JVM and its Python workers. A new session
    has the ``packages`` that sources and sinks of pipelines need besides Kafka (``avro``, ``delta``, ``postgresql`` and
    so on); with None, no jars at all, because handlers need none.
    """
    spark_version(pipelines=packages is not None)
    running = running_context()
    if running is not None:
        _refuse_choices(f"A Spark session runs in this process already, on {running.master!r}", master, conf)
        yield SparkSession.builder.getOrCreate()
        return
    session = start_session(name, master=master, conf=conf, packages=packages)
    try:
        yield session
    finally:
        end_session(session)


def start_session(
    name: str, *, master: str | None = None, conf: Mapping[str, str] | None = None, packages: Iterable[str] | None = ()
) -> SparkSession:
    if is_submitted():
        _refuse_choices("spark-submit has chosen the master and settings of this session", master, conf)
        return SparkSession(join_submitted())
    master = master or DEFAULT_MASTER
    check_master(master)
    if is_connect_url(master):
        return _connect(master, conf)
    java = find_java()
    given, log = checked_conf(conf or {}), spark_log_file()
    jars = [] if packages is None else _connector_jars(packages := tuple(packages))
    options = session_conf(
        name,
        master,
        jars=jars,
        python_path=python_path(),
        given=given,
        packages=packages or (),
        java_flags=_class_archive(master, java, jars, given),
    )
    try:
        context = start_context(
            SparkConf(loadDefaults=False).setAll(list(options.items())),
            log=log,
            environment=_environment(master, log, given),
        )
        with ExitStack() as undo:
            undo.callback(end_context, context)
            session = SparkSession(context)
            undo.pop_all()
            return session
    except (PySparkException, JvmError, ConnectionError) as error:
        raise session_error(error, master) from error


def _connect(url: str, conf: Mapping[str, str] | None) -> SparkSession:
    """Connect to a Spark Connect server, which brings its own cluster and settings."""
    builder = SparkSession.builder.remote(url)
    for name, value in checked_conf(conf or {}).items():
        builder = builder.config(name, value)
    try:
        session: SparkSession = builder.create()
    except ImportError as error:
        raise SetupError(
            f"Spark Connect needs more packages: {error}.",
            hint=f"Run `{INSTALL_SPARK} 'pyspark[connect]'` with the version of the server.",
        ) from error
    except Exception as error:
        raise session_error(error, url) from error
    return session


def end_session(session: SparkSession) -> None:
    if is_connect(session):
        session.stop()
    else:
        end_context(session.sparkContext)


def _refuse_choices(why: str, master: str | None, conf: Mapping[str, str] | None) -> None:
    if master or conf:
        raise ConfigError(
            f"{why}.", hint="Leave --master and --spark-conf out, and set them where that session is started."
        )


def fetch_jars(packages: Iterable[str] | None = (), *, progress: ProgressCallback = silent) -> None:
    """Download the jars before a session starts, with progress messages; with None, there are none to download."""
    spark_version(pipelines=packages is not None)
    if packages is not None and not is_submitted():  # spark-submit has downloaded its own
        find_java()
        for each in _jar_sets(packages):
            _resolved(each, progress=progress)


def _jar_sets(packages: Iterable[str]) -> list[Coordinates]:
    """Return a set of jars for each package, so that another sink does not download all of them again."""
    return [kafka_connector(), *(spark_package(name) for name in packages)]


def _resolved(jars: Coordinates, *, progress: ProgressCallback = silent) -> list[Path]:
    if jars in _missing:
        return []
    try:
        return resolve(jars, progress=progress)
    except SetupError as error:
        if jars != spark_package(OPTIONAL_PACKAGE):
            raise
        _missing.add(jars)
        progress(f"Python decodes Protobuf, slower than Spark's package spark-protobuf would: {error.problem}")
        return []


def _connector_jars(packages: Iterable[str]) -> list[Path]:
    """Return the jars of the Kafka connector and of these packages, without those that PySpark has."""
    jars = [path for each in _jar_sets(packages) for path in _resolved(each)]
    return one_of_each(not_in_spark(jars))


def _class_archive(master: str, java: Path, jars: list[Path], given: Mapping[str, str]) -> list[str]:
    """Return flags that halve the start time of the driver's JVM, if its class path is known and has only jars."""
    folders_added = any(os.environ.get(name) for name in _CLASS_PATH_VARIABLES)
    if not is_local(master) or folders_added or "spark.driver.extraClassPath" in given:
        return []
    return archive_flags("spark", java, [*jars, *sorted(pyspark_jars().iterdir())])


def _environment(master: str, log: Path, given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the JVM, which passes it to the Python workers."""
    environment = {
        "PYSPARK_PYTHON": _executors_python(master, given),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": python_path(),
        "LOG4J_CONFIGURATION_FILE": str(resources.files("penstock.spark") / "log4j2.xml"),
        "PENSTOCK_SPARK_LOG": str(log),
    }
    return {**environment, "SPARK_LOCAL_IP": LOOPBACK} if is_on_this_machine(master) else environment


def _executors_python(master: str, given: Mapping[str, str]) -> str:
    """Return the Python of the executors. Only spark-submit reads ``spark.pyspark.python``; here a variable decides."""
    elsewhere = None if is_local(master) else os.environ.get("PYSPARK_PYTHON")
    return given.get("spark.pyspark.python") or elsewhere or sys.executable
