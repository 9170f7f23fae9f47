"""The Spark engine: the same handlers in Spark tasks, from ``local[*]`` to a cluster; and pipelines of DataFrames."""

from penstock.jvm.installed_spark import spark_missing

try:
    import pyarrow as pa  # noqa: F401 - only checks that it is installed
    import pyspark  # noqa: F401
except ImportError as error:
    raise spark_missing() from error

from penstock.spark.driver.spark_runner import run
from penstock.spark.session.spark_conf import parse_conf
from penstock.spark.session.spark_session import fetch_jars

__all__ = ["fetch_jars", "parse_conf", "run"]
