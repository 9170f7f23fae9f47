"""What can be fetched: Maven coordinates, pinned by a lock file or following the installed PySpark."""

import importlib.metadata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from penstock.errors import ConfigError, SetupError

KAFKA_VERSION = "4.3.1"
APICURIO_VERSION = "2.6.13.Final"
SCALA_VERSION = "2.13"
_COORDINATE_PARTS = 3

_SPARK_PACKAGES = {
    "kafka": "org.apache.spark:spark-sql-kafka-0-10_{scala}:{spark}",
    "avro": "org.apache.spark:spark-avro_{scala}:{spark}",
    "protobuf": "org.apache.spark:spark-protobuf_{scala}:{spark}",
    "delta": "io.delta:delta-spark_{scala}:4.0.0",
    "iceberg": "org.apache.iceberg:iceberg-spark-runtime-{spark_minor}_{scala}:1.10.1",
    "postgresql": "org.postgresql:postgresql:42.7.7",
}


@dataclass(frozen=True)
class Artifact:
    """One module of a Maven registry, and which of its files is wanted."""

    organisation: str
    name: str
    version: str
    classifier: str = ""
    extension: str = "jar"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the usual ``organisation:name:version``."""
        parts = text.split(":")
        if len(parts) != _COORDINATE_PARTS or not all(parts):
            raise ConfigError(
                f"{text!r} is not a Maven coordinate.",
                hint="Write it as organisation:name:version, such as org.apache.kafka:kafka-clients:4.3.1.",
            )
        return cls(*parts)

    def __str__(self) -> str:
        return f"{self.organisation}:{self.name}:{self.version}"


@dataclass(frozen=True)
class Coordinates:
    """A set of artifacts that is resolved, checked and kept as one.

    ``lock`` names the file in ``locks/`` that lists every file of the set with its hash. ``unpack`` is for a set that
    is a single archive: what it holds is kept in its place.
    """

    title: str
    artifacts: tuple[Artifact, ...]
    lock: str | None = None
    unpack: bool = False


# The broker logs through SLF4J and its Maven module brings no backend for it: without the second one, it logs nothing.
KAFKA = Coordinates(
    f"Kafka {KAFKA_VERSION}",
    (
        Artifact("org.apache.kafka", f"kafka_{SCALA_VERSION}", KAFKA_VERSION),
        Artifact("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),
    ),
    lock=f"kafka-{KAFKA_VERSION}.sha256",
)

APICURIO = Coordinates(
    f"Apicurio Registry {APICURIO_VERSION}",
    (Artifact("io.apicurio", "apicurio-registry-app", APICURIO_VERSION, classifier="all", extension="tar.gz"),),
    lock=f"apicurio-{APICURIO_VERSION}.sha256",
    unpack=True,
)


def kafka_tools() -> Coordinates:
    """Return Kafka's own command line tools and checkers, which tests compare with."""
    return Coordinates(
        f"Kafka's tools {KAFKA_VERSION}",
        (
            Artifact("org.apache.kafka", "kafka-tools", KAFKA_VERSION),
            Artifact("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),
        ),
        lock=f"kafka-tools-{KAFKA_VERSION}.sha256",
    )


def spark_packages(names: Iterable[str]) -> Coordinates:
    """Return Spark's packages as one set, so that Ivy settles the versions they share.

    A name is one of ``kafka``, ``avro``, ``protobuf``, ``delta``, ``iceberg`` and ``postgresql``, in the version that
    fits the installed PySpark, or a full Maven coordinate.
    """
    spark = _pyspark_version()
    minor = ".".join(spark.split(".")[:2])
    wanted = tuple(
        Artifact.parse(_spark_package(name).format(scala=SCALA_VERSION, spark=spark, spark_minor=minor))
        for name in names
    )
    return Coordinates(f"Spark packages ({', '.join(artifact.name for artifact in wanted)})", wanted)


def kafka_connector() -> Coordinates:
    """Return Spark's own Kafka source and sink."""
    return spark_packages(["kafka"])


def _spark_package(name: str) -> str:
    if ":" in name:
        return name
    if name not in _SPARK_PACKAGES:
        raise ConfigError(
            f"There is no Spark package named {name!r}.",
            hint=f"Use one of {', '.join(_SPARK_PACKAGES)}, or a coordinate as organisation:name:version.",
        )
    return _SPARK_PACKAGES[name]


def _pyspark_version() -> str:
    try:
        return importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError as error:
        raise pyspark_missing() from error


def pyspark_missing() -> SetupError:
    return SetupError(
        "PySpark is not installed; its jars hold the tool that fetches Kafka and Spark's connectors.",
        hint="Run `pip install 'penstock[spark]'`.",
    )
