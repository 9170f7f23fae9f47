"""Python workers that die: their slices run again, and a handler that always kills them stops the app."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafka_helpers import CatchUp, MakeTopic, committed, of_kind, produce, read_values
from penstock import App, Retry
from penstock.core.reports import events
from penstock.errors import ConfigError, HandlerError
from penstock.kafka import Cluster
from penstock.spark.session.spark_session import spark_session


def test_a_crash_of_a_worker_is_reported_and_its_slice_runs_again(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp, tmp_path: Path
) -> None:
    source, crashed = make_topic(), str(tmp_path / "crashed")
    app = App(group)

    @app.consume(source, to=f"{group}.out", restart=Retry(attempts=3, first="50ms"))
    def handle(value: bytes) -> bytes:
        import os  # noqa: PLC0415 - in the worker

        if value == b"100" and not os.path.exists(crashed):  # noqa: PTH110
            open(crashed, "w").close()  # noqa: PTH123
            os._exit(7)
        return value

    produce(brokers, source, range(500))
    seen = catch_up(app)
    (again,) = of_kind(seen, events.Restarting)
    assert again.reason == f"A Python process died while it ran handler handle ({source}[0], offsets 0 to 499)."
    assert again.attempt == 1
    assert 0.04 <= again.seconds <= 0.06
    assert not of_kind(seen, events.Error)
    assert {int(value or b"") for value in read_values(brokers, f"{group}.out")} == set(range(500))
    assert committed(cluster, group, source) == {0: 500}


def test_failures_without_any_progress_end_in_an_error(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic()
    app = App(group)

    @app.consume(source, restart=Retry(attempts=2, first="1ms"))
    def handle(_value: bytes) -> None:
        import os  # noqa: PLC0415 - in the worker

        os._exit(7)

    produce(brokers, source, range(5))
    with pytest.raises(HandlerError, match="It failed 2 times in a row, with no slice finished in between"):
        catch_up(app)
    assert committed(cluster, group, source) == {}


def test_a_session_that_runs_in_this_process_is_used_and_left_running(spark: SparkSession) -> None:
    with spark_session("test") as session:
        assert session.sparkContext is spark.sparkContext
    assert spark.range(3).count() == 3
    with pytest.raises(ConfigError, match="runs in this process already"), spark_session("test", master="local[1]"):
        pass
