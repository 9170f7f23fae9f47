"""Private parts of Spark: one file uses them, and only with versions of Spark that are tested."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import penstock.spark
from penstock.errors import SetupError
from penstock.jvm.installed_spark import HANDLER_SPARK, PIPELINE_SPARK, UNTESTED_VARIABLE
from penstock.spark.internals import check_version

_FOLDER = Path(penstock.spark.__file__).parent

# Ruff's SLF001 finds each attribute with an underscore of another class, so no other file may switch it off.
_PRIVATE = re.compile(
    r"SLF001|\b_j(vm|df|sc|sq|rdd|conf|sparkSession)\b|py4j|java_gateway|PYSPARK_GATEWAY|pyspark\.sql\.internal|"
    r"queryExecution|executedPlan|toRdd|sessionState|getClass\(|org[./]apache[./](spark|hadoop)|QueryContextLogger"
)
# File, text, why it may stay.
_ALLOWED = (
    ("session/spark_conf.py", "org.apache.spark.sql.delta.catalog.DeltaCatalog", "a setting that Delta documents"),
    ("pipelines/protobuf_columns.py", "org/apache/spark/sql/protobuf/ProtobufDataToCatalyst", "asked for, not used"),
)


def test_only_one_file_uses_private_parts_of_spark() -> None:
    found = []
    for path in sorted(_FOLDER.rglob("*.py")):
        name = path.relative_to(_FOLDER).as_posix()
        allowed = [text for file, text, _ in _ALLOWED if file == name]
        if name != "internals.py":
            lines = enumerate(path.read_text("utf-8").splitlines(), 1)
            found += [
                f"{name}:{number}: {line.strip()}"
                for number, line in lines
                if _PRIVATE.search(line) and not any(text in line for text in allowed)
            ]
    assert found == [], "Move these into penstock/spark/internals.py."


def _session(version: str) -> Any:
    return SimpleNamespace(version=version)


@pytest.mark.parametrize("version", [f"{each}.1" for each in HANDLER_SPARK] + ["4.1.0-amzn-1"])
def test_a_session_for_handlers_may_be_any_spark_4(version: str) -> None:
    check_version(_session(version), pipelines=False)


@pytest.mark.parametrize("version", [PIPELINE_SPARK[0], f"{PIPELINE_SPARK[0]}-amzn-1"])
def test_a_session_for_pipelines_has_the_version_of_their_connector(version: str) -> None:
    check_version(_session(version), pipelines=True)


@pytest.mark.parametrize(("version", "pipelines"), [("4.7.1", False), ("3.5.0", False), ("4.3.0", True)])
def test_a_session_of_another_spark_is_refused_with_what_to_install(version: str, *, pipelines: bool) -> None:
    with pytest.raises(SetupError) as caught:
        check_version(_session(version), pipelines=pipelines)
    assert f"Spark {version} runs this session" in caught.value.problem
    assert ("pipelines only" if pipelines else "handlers only") in caught.value.problem
    assert f"'pyspark=={PIPELINE_SPARK[0]}'" in caught.value.hint


def test_another_spark_can_be_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(UNTESTED_VARIABLE, "1")
    check_version(_session("4.7.1"), pipelines=True)
