"""The installed PySpark: its version, its jars, and whether Penstock is tested with it."""

import importlib.metadata
import importlib.util
import os
import re
from collections.abc import Iterable
from pathlib import Path

from penstock.errors import SetupError

# Handlers need only Spark's public API, and no jar. The tests run them on the oldest and the newest of these.
HANDLER_SPARK = ("4.0", "4.1", "4.2", "4.3")
# Pipelines also need Spark's Kafka connector of the same version, and not every version has a complete one. The newest
# comes first; the `spark` extra installs it.
PIPELINE_SPARK = ("4.0.0",)
UNTESTED_VARIABLE = "PENSTOCK_UNTESTED_SPARK"
INSTALL_SPARK = "pip install 'penstock[spark]'"


def spark_version(*, pipelines: bool = False) -> str:
    """Return the version of the installed PySpark. Every use of Spark makes this check."""
    version = _installed_version()
    check_spark(version, "PySpark", "is installed", pipelines=pipelines)
    return version


def check_spark(version: str, what: str, where: str, *, pipelines: bool) -> None:
    """Raise an error unless Penstock is tested with this version, or the user has asked to try it."""
    number = version.partition("-")[0]  # vendors add a suffix: 4.0.0-amzn-0
    fits = number in PIPELINE_SPARK if pipelines else number.rpartition(".")[0] in HANDLER_SPARK
    if fits or os.environ.get(UNTESTED_VARIABLE) == "1":
        return
    kind, tested = ("pipelines", PIPELINE_SPARK) if pipelines else ("handlers", HANDLER_SPARK)
    raise SetupError(
        f"{what} {version} {where}, and Penstock runs {kind} only on Spark {', '.join(tested)}.",
        hint=f"Run `{INSTALL_SPARK} 'pyspark=={PIPELINE_SPARK[0]}'`, and use a cluster of that version. "
        f"To try {what} {version} anyway, set {UNTESTED_VARIABLE}=1.",
    )


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
