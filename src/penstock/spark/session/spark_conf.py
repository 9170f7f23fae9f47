"""Spark's settings: those that Penstock sets, and those that a user adds with ``--spark-conf``."""

import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from penstock.errors import ConfigError
from penstock.spark.session.masters import LOOPBACK, is_local, is_on_this_machine

_CONNECT = "Penstock starts its own driver. Leave this setting out, and name the master with --master."

# Settings that --spark-conf refuses, and what to use instead.
_REFUSED = {
    "spark.master": "Use --master URL.",
    "spark.submit.deployMode": "Use spark-submit for that: docs/spark-clusters.md has examples.",
    "spark.sql.streaming.checkpointLocation": "Use --checkpoint DIR.",
    "spark.remote": _CONNECT,
    "spark.api.mode": _CONNECT,
}

# Settings that are lists, with their separator: the user's items are added to Penstock's.
_LISTS = {
    "spark.jars": ",",
    "spark.driver.extraClassPath": os.pathsep,
    "spark.executorEnv.PYTHONPATH": os.pathsep,
    "spark.sql.extensions": ",",
    "spark.driver.extraJavaOptions": " ",
    "spark.executor.extraJavaOptions": " ",
}

# Spark extensions that tables of these kinds need when a session starts.
_EXTENSIONS = {
    "delta": "io.delta.sql.DeltaSparkSessionExtension",
    "iceberg": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}
# A few bytes of Avro can claim any length, and Java's library allocates that before it reads on: a damaged value would
# take all memory. These are the limits for the items of one array or map, and for the bytes of one text.
_AVRO_LIMITS = {"collectionItems": 10_000_000, "bytes": 100_000_000, "string": 100_000_000}
_DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"


def parse_conf(flags: Iterable[str]) -> dict[str, str]:
    """Parse ``NAME=VALUE`` of the command line."""
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
            raise ConfigError(f"--spark-conf does not accept {name}.", hint=_REFUSED[name])
        if not name.startswith("spark."):
            raise ConfigError(
                f"{name!r} is not a setting of Spark.",
                hint="Spark's settings have names like spark.executor.memory. "
                "For Kafka's settings use --set settings.NAME=VALUE.",
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
    """Return all settings of a new session; the user's (``given``) win. ``java_flags`` are for the driver."""
    files = [str(jar) for jar in jars]
    defaults = {
        "spark.master": master,
        "spark.app.name": f"penstock {name}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Spark keeps a history for its UI even if that is off. By default it is so long that a stream fills the memory.
        "spark.ui.retainedJobs": "100",
        "spark.ui.retainedStages": "100",
        "spark.ui.retainedTasks": "1000",
        "spark.sql.ui.retainedExecutions": "20",
        "spark.sql.session.timeZone": "UTC",
        # Hive's catalog would look for a database first.
        "spark.sql.catalogImplementation": "in-memory",
        **_of_packages(tuple(packages)),
    }
    if flags := shlex.join(java_flags):
        defaults["spark.driver.extraJavaOptions"] = (
            f"{flags} {defaults.get('spark.driver.extraJavaOptions', '')}".strip()
        )
    if is_on_this_machine(master):
        defaults |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    if is_local(master):
        defaults |= {
            "spark.sql.shuffle.partitions": "2",
            # Delta's VACUUM lists files in this many tasks, however few files there are. With Spark's 10,000 the VACUUM
            # of a small table took minutes of processor time.
            "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
            "spark.executorEnv.PYTHONPATH": python_path,
            # Faster than spark.jars, which Spark copies first, for executors on other machines.
            "spark.driver.extraClassPath": os.pathsep.join(files),
        }
    else:
        defaults["spark.jars"] = ",".join(files)
    return {**defaults, **{key: _merged(defaults, key, value) for key, value in given.items()}}


def _of_packages(packages: tuple[str, ...]) -> dict[str, str]:
    extensions = [_EXTENSIONS[name] for name in packages if name in _EXTENSIONS]
    found = {"spark.sql.extensions": ",".join(extensions)} if extensions else {}
    if "delta" in packages:
        found["spark.sql.catalog.spark_catalog"] = _DELTA_CATALOG
    if "avro" in packages:
        limits = " ".join(f"-Dorg.apache.avro.limits.{name}.maxLength={most}" for name, most in _AVRO_LIMITS.items())
        found |= {"spark.driver.extraJavaOptions": limits, "spark.executor.extraJavaOptions": limits}
    return found


def _merged(defaults: Mapping[str, str], name: str, value: str) -> str:
    return _LISTS[name].join([defaults[name], value]) if name in _LISTS and name in defaults else value
