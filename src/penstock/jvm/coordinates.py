"""The Maven artifacts that Penstock downloads, with lock files for those that it names."""

from dataclasses import dataclass, replace
from typing import Self

from penstock.errors import ConfigError
from penstock.jvm.installed_spark import spark_version
from penstock.jvm.lockfile import has_lock

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
    "sqlite": "org.xerial:sqlite-jdbc:3.50.3.0",
}


@dataclass(frozen=True)
class Artifact:
    """One file of a module in a Maven registry."""

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

    @classmethod
    def of_path(cls, path: str) -> Self:
        """Read ``org/example/name/1.0/name-1.0-classifier.jar``, a path in a registry."""
        *organisation, name, version, file = path.split("/")
        rest = file.removeprefix(f"{name}-{version}")
        classifier, _, extension = rest.partition(".")
        return cls(".".join(organisation), name, version, classifier.removeprefix("-"), extension)

    def path(self) -> str:
        """Return where the file is in a registry."""
        suffix = f"-{self.classifier}" if self.classifier else ""
        folder = f"{self.organisation.replace('.', '/')}/{self.name}/{self.version}"
        return f"{folder}/{self.name}-{self.version}{suffix}.{self.extension}"

    def __str__(self) -> str:
        return f"{self.organisation}:{self.name}:{self.version}"


@dataclass(frozen=True)
class Coordinates:
    """A set of artifacts that is downloaded, checked and cached as one.

    ``lock`` names the file in ``locks/`` that lists every file of the set. Without a lock, dependencies are resolved
    from the artifacts' poms. With ``unpack``, the set is a single archive, and its content is cached instead of it.
    """

    title: str
    artifacts: tuple[Artifact, ...]
    lock: str | None = None
    unpack: bool = False


# The broker logs through SLF4J. Its Maven module has no backend for SLF4J: without the second artifact it logs nothing.
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
    """Return Kafka's command-line tools, which tests compare Penstock with."""
    return Coordinates(
        f"Kafka's tools {KAFKA_VERSION}",
        (
            Artifact("org.apache.kafka", "kafka-tools", KAFKA_VERSION),
            Artifact("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),
        ),
        lock=f"kafka-tools-{KAFKA_VERSION}.sha256",
    )


def spark_package(name: str) -> Coordinates:
    """Return a Spark package with its dependencies, without those that Spark already has.

    The name is one of ``kafka``, ``avro``, ``protobuf``, ``delta``, ``iceberg``, ``postgresql`` and ``sqlite``, in the
    version that fits the installed PySpark, or a full Maven coordinate.
    """
    spark = spark_version(pipelines=True)
    minor = ".".join(spark.split(".")[:2])
    artifact = Artifact.parse(_spark_package(name).format(scala=SCALA_VERSION, spark=spark, spark_minor=minor))
    lock = _lock_name(artifact)
    pinned = name in _SPARK_PACKAGES and has_lock(lock)
    return Coordinates(f"Spark package {artifact.name}", (artifact,), lock=lock if pinned else None)


def pinned_packages() -> list[Coordinates]:
    """Return the packages that have a lock, or should get one."""
    # Without Protobuf: not every Maven registry has it, and Penstock does not need it.
    packages = [spark_package(name) for name in _SPARK_PACKAGES if name != "protobuf"]
    return [replace(each, lock=_lock_name(each.artifacts[0])) for each in packages]


def _lock_name(artifact: Artifact) -> str:
    return f"{artifact.name}-{artifact.version}.sha256"


def kafka_connector() -> Coordinates:
    """Return Spark's own Kafka source and sink."""
    return spark_package("kafka")


def _spark_package(name: str) -> str:
    if ":" in name:
        return name
    if name not in _SPARK_PACKAGES:
        raise ConfigError(
            f"There is no Spark package named {name!r}.",
            hint=f"Use one of {', '.join(_SPARK_PACKAGES)}, or a coordinate as organisation:name:version.",
        )
    return _SPARK_PACKAGES[name]
