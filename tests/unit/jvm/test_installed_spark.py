"""Which PySpark is installed, and what the user reads if it is not the right one."""

import importlib.metadata
import importlib.util
import threading
import tomllib
from pathlib import Path

import pytest

from penstock.demo.demo_runner import DemoOptions, run_demo
from penstock.errors import SetupError
from penstock.jvm.installed_spark import PIPELINE_SPARK, pyspark_jars, spark_version
from penstock.spark import fetch_jars
from penstock.spark.session.spark_session import spark_session

ROOT = Path(__file__).parents[3]


@pytest.fixture
def another_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "3.5.1" if name == "pyspark" else found(name))


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)


@pytest.mark.usefixtures("another_spark")
def test_another_version_is_named_with_those_that_work_and_the_command_that_installs_one() -> None:
    with pytest.raises(SetupError) as caught:
        spark_version(pipelines=True)
    assert "PySpark 3.5.1 is installed" in caught.value.problem
    assert "runs pipelines only on Spark 4.0.0" in caught.value.problem
    assert "`pip install 'penstock[spark]' 'pyspark==4.0.0'`" in caught.value.hint


@pytest.mark.usefixtures("another_spark")
def test_another_version_can_be_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_UNTESTED_SPARK", "1")
    assert spark_version(pipelines=True) == "3.5.1"


def test_handlers_run_on_newer_versions_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "4.3.0")
    assert spark_version() == "4.3.0"
    fetch_jars(None)  # there are none
    with pytest.raises(SetupError, match=r"PySpark 4\.3\.0 is installed"):
        fetch_jars(())


@pytest.mark.usefixtures("another_spark")
def test_every_use_of_spark_checks_the_version() -> None:
    with pytest.raises(SetupError, match=r"PySpark 3\.5\.1 is installed"), spark_session("test"):
        pass
    with pytest.raises(SetupError, match=r"PySpark 3\.5\.1 is installed"):
        fetch_jars()


class Watching:
    def __init__(self) -> None:
        self.steps: list[str] = []

    def step(self, text: str, **_: object) -> None:
        self.steps.append(text)

    def event(self, event: object) -> None:
        raise AssertionError(event)


@pytest.mark.usefixtures("another_spark")
@pytest.mark.parametrize("engines", [("spark",), ("spark", "local")])
def test_the_demo_checks_it_before_it_starts_anything(engines: tuple[str, ...]) -> None:
    watching = Watching()
    with pytest.raises(SetupError, match=r"PySpark 3\.5\.1 is installed") as caught:
        run_demo(DemoOptions(engines=engines), watching, threading.Event())
    assert watching.steps == []
    assert "penstock demo --engine local" in caught.value.hint


@pytest.mark.usefixtures("no_spark")
def test_a_missing_pyspark_names_the_extra() -> None:
    for needs_it in (spark_version, pyspark_jars):
        with pytest.raises(SetupError) as caught:
            needs_it()
        assert "pip install 'penstock[spark]'" in caught.value.hint


def test_the_spark_extra_installs_the_newest_version_that_is_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert f"pyspark=={PIPELINE_SPARK[0]}" in project["optional-dependencies"]["spark"]
    assert importlib.metadata.version("pyspark") in PIPELINE_SPARK
