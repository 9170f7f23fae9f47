import importlib.metadata

import pytest

from penstock.errors import ConfigError, SetupError
from penstock.jvm.coordinates import Artifact, kafka_connector, spark_packages


def test_reads_a_coordinate() -> None:
    assert str(Artifact.parse("org.apache.kafka:kafka-clients:4.3.1")) == "org.apache.kafka:kafka-clients:4.3.1"


@pytest.mark.parametrize("text", ["kafka", "a:b", "a::1", "a:b:c:d"])
def test_refuses_what_is_no_coordinate(text: str) -> None:
    with pytest.raises(ConfigError, match="not a Maven coordinate"):
        Artifact.parse(text)


def test_spark_packages_follow_the_installed_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "4.2.7")
    packages = spark_packages(["kafka", "iceberg", "org.example:extra:1.0"])
    assert [str(artifact) for artifact in packages.artifacts] == [
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.7",
        "org.apache.iceberg:iceberg-spark-runtime-4.2_2.13:1.10.1",
        "org.example:extra:1.0",
    ]
    assert packages.lock is None


def test_unknown_spark_package_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="'hudi'") as caught:
        spark_packages(["hudi"])
    assert "kafka, avro, protobuf, delta, iceberg" in caught.value.hint


def test_without_pyspark_the_hint_is_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(SetupError) as caught:
        kafka_connector()
    assert "pip install 'penstock[spark]'" in caught.value.hint
