"""The installed PySpark: its version, its jars, and whether Penstock is tested with it."""

import importlib.metadata
import importlib.util
import os
import re
from collections.abc import Iterable
from pathlib import Path

from penstock.errors import SetupError

# Versions that the tests use. The newest comes first; the `spark` extra installs it.
TESTED_SPARK = ("4.0.0",)
UNTESTED_VARIABLE = "PENSTOCK_UNTESTED_SPARK"
INSTALL_SPARK = "pip install 'penstock[spark]'"


def spark_version() -> str:
    """Return the version of the installed PySpark. Every use of Spark makes this check.

    Spark's Kafka connector must have the same version, and not every version has a complete one.
    """
    version = _installed_version()
    if version not in TESTED_SPARK and os.environ.get(UNTESTED_VARIABLE) != "1":
        raise SetupError(
            f"PySpark {version} is installed, but Penstock is tested only with PySpark {', '.join(TESTED_SPARK)}.",
            hint=f"Run `{INSTALL_SPARK} 'pyspark=={TESTED_SPARK[0]}'`. "
            f"To try PySpark {version} anyway, set {UNTESTED_VARIABLE}=1.",
        )
    return version


def spark_missing() -> SetupError:
    return SetupError(
        "The Spark engine needs PySpark and PyArrow, which are not installed.", hint=f"Run `{INSTALL_SPARK}`."
    )


def pyspark_jars() -> Path:
    """Return PySpark's jar folder without importing PySpark, which takes a second."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise spark_missing()
    # Resolve symbolic links, so that environments that share one PySpark share its class archive too.
    return Path(spec.origin).resolve().parent / "jars"


def not_in_spark(jars: Iterable[Path]) -> list[Path]:
    """Leave out jars that PySpark has: another version of such a jar would hide PySpark's."""
    brought = {_without_version(path.name) for path in pyspark_jars().iterdir()}
    return [path for path in jars if _without_version(path.name) not in brought]


def one_of_each(jars: Iterable[Path]) -> list[Path]:
    """Keep one version of each jar, the last."""
    return list({_without_version(path.name): path for path in jars}.values())


def _without_version(jar: str) -> str:
    return re.sub(r"-\d[^-]*(-[^-]*)?\.jar$", "", jar)


def _installed_version() -> str:
    try:
        return importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError as error:
        # spark-submit provides PySpark as files without pip's metadata.
        if importlib.util.find_spec("pyspark") is None:
            raise spark_missing() from error
        import pyspark  # noqa: PLC0415 - takes a second

        return pyspark.__version__
