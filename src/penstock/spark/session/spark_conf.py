"""Spark's own settings: those that Penstock sets, and those that a user adds with ``--spark-conf``."""

import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from penstock.errors import ConfigError
from penstock.spark.session.masters import LOOPBACK, is_local, is_on_this_machine

_CONNECT = "Penstock needs a driver of its own: leave it out, and name the master with --master."

# Decided elsewhere, each with what to do instead.
_REFUSED = {
    "spark.master": "Use --master URL.",
    "spark.submit.deployMode": "Use spark-submit for that: docs/spark-clusters.md has examples.",
    "spark.sql.streaming.checkpointLocation": "Use --checkpoint DIR.",
    "spark.remote": _CONNECT,
    "spark.api.mode": _CONNECT,
}

# Lists: what a user names is added to what Penstock needs.
_LISTS = {
    "spark.jars": ",",
    "spark.driver.extraClassPath": os.pathsep,
    "spark.executorEnv.PYTHONPATH": os.pathsep,
    "spark.sql.extensions": ",",
    "spark.driver.extraJavaOptions": " ",
    "spark.executor.extraJavaOptions": " ",
}

# What Spark has to know before a session starts, for tables of these kinds.
_EXTENSIONS = {
    "delta": "io.delta.sql.DeltaSparkSessionExtension",
    "iceberg": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}
# A few bytes of Avro can claim any length, and its library makes room for it before it reads on: a damaged value would
# take all memory. These are the most that it makes room for: items of one array or map, bytes of one text.
_AVRO_LIMITS = {"collectionItems": 10_000_000, "bytes": 100_000_000, "string": 100_000_000}
_DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"


def parse_conf(flags: Iterable[str]) -> dict[str, str]:
    """From ``NAME=VALUE`` of the command line."""
    found = {}
    for flag in flags:
        name, equals, value = flag.partition("=")
        if not equals:
            raise ConfigError(f"--spark-conf {flag!r} has no value.", hint="Write --spark-conf NAME=VALUE.")
        found[name.strip()] = value
    return checked_conf(found)


def checked_conf(conf: Mapping[str, str]) -> dict[str, str]:
    for name in conf:
        if name in _REFUSED:
            raise ConfigError(f"{name} is not for --spark-conf.", hint=_REFUSED[name])
        if not name.startswith("spark."):
            raise ConfigError(
                f"{name!r} is not a setting of Spark.",
                hint="Spark's are like spark.executor.memory; those of Kafka go with --set settings.NAME=VALUE.",
            )
    return dict(conf)


def session_conf(
    name: str,
    master: str,
    *,
    jars: Iterable[Path],
    python_path: str,
    given: Mapping[str, str],
    packages: Iterable[str] = (),
    java_flags: Iterable[str] = (),
) -> dict[str, str]:
    """All settings of a session of our own; what a user gives comes last. ``java_flags`` are for the driver."""
    files = [str(jar) for jar in jars]
    ours = {
        "spark.master": master,
        "spark.app.name": f"penstock {name}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Spark keeps a history for its UI even without one: by default of so many tasks that a stream fills the memory.
        "spark.ui.retainedJobs": "100",
        "spark.ui.retainedStages": "100",
        "spark.ui.retainedTasks": "1000",
        "spark.sql.ui.retainedExecutions": "20",
        "spark.sql.session.timeZone": "UTC",
        # Hive's would look for a database first.
        "spark.sql.catalogImplementation": "in-memory",
        **_of_packages(tuple(packages)),
    }
    if flags := shlex.join(java_flags):
        ours["spark.driver.extraJavaOptions"] = f"{flags} {ours.get('spark.driver.extraJavaOptions', '')}".strip()
    if is_on_this_machine(master):
        ours |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    if is_local(master):
        ours |= {
            "spark.sql.shuffle.partitions": "2",
            "spark.executorEnv.PYTHONPATH": python_path,
            # On the class path they are there from the start; spark.jars are copied first, for executors elsewhere.
            "spark.driver.extraClassPath": os.pathsep.join(files),
        }
    else:
        ours["spark.jars"] = ",".join(files)
    return {**ours, **{key: _with_ours(ours, key, value) for key, value in given.items()}}


def _of_packages(packages: tuple[str, ...]) -> dict[str, str]:
    extensions = [_EXTENSIONS[name] for name in packages if name in _EXTENSIONS]
    found = {"spark.sql.extensions": ",".join(extensions)} if extensions else {}
    if "delta" in packages:
        found["spark.sql.catalog.spark_catalog"] = _DELTA_CATALOG
    if "avro" in packages:
        limits = " ".join(f"-Dorg.apache.avro.limits.{name}.maxLength={most}" for name, most in _AVRO_LIMITS.items())
        found |= {"spark.driver.extraJavaOptions": limits, "spark.executor.extraJavaOptions": limits}
    return found


def _with_ours(ours: Mapping[str, str], name: str, value: str) -> str:
    return _LISTS[name].join([ours[name], value]) if name in _LISTS and name in ours else value
