"""The Spark engine: the same handlers in Spark tasks, from ``local[*]`` to a cluster; and pipelines of DataFrames.

Its names are imported on first use: every Python worker imports this package, and needs only ``penstock.spark.tasks``.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from penstock.jvm.installed_spark import spark_missing

if TYPE_CHECKING:
    from penstock.spark.driver.spark_runner import run
    from penstock.spark.session.session_facts import session_facts
    from penstock.spark.session.spark_conf import parse_conf
    from penstock.spark.session.spark_session import fetch_jars

_HOMES = {
    "fetch_jars": "penstock.spark.session.spark_session",
    "parse_conf": "penstock.spark.session.spark_conf",
    "run": "penstock.spark.driver.spark_runner",
    "session_facts": "penstock.spark.session.session_facts",
}

__all__ = ["fetch_jars", "parse_conf", "run", "session_facts"]

if find_spec("pyspark") is None or find_spec("pyarrow") is None:
    raise spark_missing()


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
