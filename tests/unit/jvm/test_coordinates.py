import importlib.metadata

import pytest

from penstock.errors import ConfigError
from penstock.jvm.coordinates import Artifact, spark_package


def test_reads_a_coordinate() -> None:
    assert str(Artifact.parse("org.apache.kafka:kafka-clients:4.3.1")) == "org.apache.kafka:kafka-clients:4.3.1"


@pytest.mark.parametrize("text", ["kafka", "a:b", "a::1", "a:b:c:d"])
def test_refuses_what_is_no_coordinate(text: str) -> None:
    with pytest.raises(ConfigError, match="not a Maven coordinate"):
        Artifact.parse(text)


def test_a_path_in_a_registry_and_an_artifact_are_the_same() -> None:
    path = "org/example/deep/tool_2.13/1.0.Final/tool_2.13-1.0.Final-all.tar.gz"
    artifact = Artifact("org.example.deep", "tool_2.13", "1.0.Final", "all", "tar.gz")
    assert Artifact.of_path(path) == artifact
    assert artifact.path() == path


@pytest.mark.parametrize("name", ["kafka", "avro", "delta", "iceberg", "postgresql"])
def test_packages_of_a_tested_spark_have_locks(name: str) -> None:
    assert spark_package(name).lock


def test_packages_follow_the_installed_pyspark_and_other_versions_have_no_lock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PENSTOCK_UNTESTED_SPARK", "1")
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "4.2.7")
    packages = [spark_package(name) for name in ("kafka", "iceberg", "org.example:extra:1.0")]
    assert [str(package.artifacts[0]) for package in packages] == [
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.7",
        "org.apache.iceberg:iceberg-spark-runtime-4.2_2.13:1.10.1",
        "org.example:extra:1.0",
    ]
    assert [package.lock for package in packages] == [None] * 3


def test_unknown_spark_package_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="'hudi'") as caught:
        spark_package("hudi")
    assert "kafka, avro, protobuf, delta, iceberg" in caught.value.hint
