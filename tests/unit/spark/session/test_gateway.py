"""Rules for the driver's JVM, tested without a JVM."""

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.errors import ConfigError, ServerError
from penstock.spark.session.gateway import _bounded
from penstock.spark.session.spark_session import start_session


def test_a_cluster_that_never_answers_ends_the_jvm_and_is_an_error() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])

    def ask() -> None:
        with _bounded(process, "yarn", Path("spark.log"), seconds=0.01):
            process.wait()
            raise ConnectionError("Answer from Java side is empty")

    with pytest.raises(ServerError) as caught:
        ask()
    assert caught.value.problem == "Spark did not start on 'yarn' within 0.01 s."
    assert "spark.log" in caught.value.hint


def test_an_error_within_the_time_stays_what_it_is() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    with pytest.raises(ConnectionError), _bounded(process, "yarn", Path("spark.log")):
        raise ConnectionError
    process.wait()


def test_under_spark_submit_master_and_settings_are_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    with pytest.raises(ConfigError, match="spark-submit has chosen"):
        start_session("test", master="local[1]")
    with pytest.raises(ConfigError, match="spark-submit has chosen"):
        start_session("test", conf={"spark.executor.memory": "1g"})
