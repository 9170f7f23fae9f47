"""Streams: windows, joins, state, several sources and several sinks."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kafka_helpers import CatchUp, MakeTopic, committed, of_kind, produce, read_values
from penstock import App, Source, Table
from penstock.app import Sink
from penstock.core.reports import events
from penstock.errors import ConfigError, HandlerError, StateError
from penstock.kafka import Cluster
from tables import rows


@dataclass
class Order:
    id: int
    customer: str
    amount: float
    at: datetime


@dataclass
class Payment:
    order_id: int
    method: str


def order(number: int, minute: int, amount: float = 1.0) -> str:
    at = datetime(2026, 1, 1, 12, minute, tzinfo=UTC).isoformat()
    return json.dumps({"id": number, "customer": f"c{number % 2}", "amount": amount, "at": at})


def revenue_app(group: str, source: str, **options: Any) -> App:
    app = App(group)

    @app.pipeline(source, value=Order, to=f"{group}.out", **options)
    def revenue(orders: DataFrame) -> DataFrame:
        windows = orders.withWatermark("at", "1 minute").groupBy(F.window("at", "10 minutes"))
        return windows.agg(F.sum("amount").alias("total")).selectExpr("minute(window.start) AS minute", "total")

    return app


def totals(brokers: str, group: str) -> list[tuple[int, float]]:
    found = [json.loads(value or b"") for value in read_values(brokers, f"{group}.out")]
    return sorted((each["minute"], each["total"]) for each in found)


def test_a_window_is_written_once_when_its_watermark_has_passed_and_its_state_outlives_a_restart(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic()
    produce(brokers, source, [order(1, 0), order(2, 5), order(3, 12)])
    catch_up(revenue_app(group, source))
    produce(brokers, source, [order(4, 15), order(5, 45)])
    catch_up(revenue_app(group, source))
    produce(brokers, source, [order(6, 59)])
    catch_up(revenue_app(group, source))
    assert totals(brokers, group) == [(0, 2.0), (10, 2.0)]
    # The state cannot follow the offsets if another tool has moved the group.
    produce(brokers, source, [order(7, 59)])
    for offset in (7, 2):
        cluster.commit(group, {(source, 0): offset})
        with pytest.raises(StateError, match=rf"keeps a state .*{source}\[0\] from 6 to {offset}\)"):
            catch_up(revenue_app(group, source))
        assert committed(cluster, group, source) == {0: offset}


def test_a_pipeline_without_state_continues_where_another_tool_moved_its_group(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic()
    app = App(group)

    @app.pipeline(source, value=Order, to=f"{group}.out")
    def copy(orders: DataFrame) -> DataFrame:
        return orders.select("id")

    def run() -> tuple[list[bytes | None], list[str]]:
        """The rows that it writes, and the events that it reports."""
        reported = [each.reason for each in of_kind(catch_up(app), events.Error)]
        written = read_values(brokers, f"{group}.out")
        known, seen[:] = len(seen), written
        return written[known:], reported

    seen: list[bytes | None] = []
    produce(brokers, source, [order(number, 0) for number in range(4)])
    assert run() == ([b'{"id":0}', b'{"id":1}', b'{"id":2}', b'{"id":3}'], [])
    cluster.commit(group, {(source, 0): 2})
    written, (reported,) = run()
    assert written == [b'{"id":2}', b'{"id":3}']
    assert f"{source}[0] from 4 to 2" in reported
    produce(brokers, source, [order(number, 0) for number in range(4, 7)])
    cluster.commit(group, {(source, 0): 6})
    written, (reported,) = run()
    assert written == [b'{"id":6}']
    assert run() == ([], [])
    assert committed(cluster, group, source) == {0: 7}


def test_two_topics_are_joined_and_both_are_committed(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    orders_topic, payments_topic = make_topic(), make_topic(2)
    produce(brokers, orders_topic, [order(1, 0), order(2, 1)])
    produce(brokers, payments_topic, [json.dumps({"order_id": 2, "method": "card"})], partition=1)
    app = App(group)

    @app.pipeline(
        sources={"orders": Source(orders_topic, value=Order), "payments": Source(payments_topic, value=Payment)},
        to=f"{group}.out",
    )
    def paid(orders: DataFrame, payments: DataFrame) -> DataFrame:
        return orders.join(payments, orders.id == payments.order_id).select("id", "method")

    seen = catch_up(app)
    produce(brokers, payments_topic, [json.dumps({"order_id": 1, "method": "cash"})])
    catch_up(app)
    found = [json.loads(value or b"") for value in read_values(brokers, f"{group}.out")]
    assert found == [{"id": 2, "method": "card"}, {"id": 1, "method": "cash"}]
    assert committed(cluster, group, orders_topic) == {0: 2}
    assert committed(cluster, group, payments_topic) == {0: 1, 1: 1}
    assert of_kind(seen, events.Stopped)[0].read == 3


def test_one_output_goes_to_several_sinks_and_several_outputs_each_to_their_own(
    brokers: str,
    cluster: Cluster,
    group: str,
    make_topic: MakeTopic,
    catch_up: CatchUp,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    source = make_topic(2)
    produce(brokers, source, [order(1, 0), order(2, 0)])
    produce(brokers, source, [order(3, 0, amount=100)], partition=1)
    app = App(group)
    both: list[str | Sink] = [Table("all", path=str(tmp_path), format="parquet"), f"{group}.all"]

    @app.pipeline(source, value=Order, to={"everything": both, "large": f"{group}.large"})
    def split(orders: DataFrame) -> Mapping[str, DataFrame]:
        return {"everything": orders.select("id"), "large": orders.where("amount > 10").select("id")}

    seen = catch_up(app)
    assert sorted(row["id"] for row in rows(spark.read.parquet(f"{tmp_path}/all"))) == [1, 2, 3]
    assert sorted(read_values(brokers, f"{group}.all")) == [b'{"id":1}', b'{"id":2}', b'{"id":3}']  # type: ignore[type-var]
    assert read_values(brokers, f"{group}.large") == [b'{"id":3}']
    assert committed(cluster, group, source) == {0: 2, 1: 1}
    stopped = {each.handler: (each.read, each.written) for each in of_kind(seen, events.Stopped)}
    assert stopped == {"split.everything": (3, 3), "split.large": (3, 1)}
    opened = {(each.handler, each.sink) for each in of_kind(seen, events.SinkOpened)}
    assert ("split.everything", "parquet table all") in opened


def test_a_plan_that_spark_cannot_run_is_one_error_in_one_sentence(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp, caplog: pytest.LogCaptureFixture
) -> None:
    source = make_topic()
    app = App(group)

    @app.pipeline(source, value=Order, to=f"{group}.out")
    def wrong(orders: DataFrame) -> DataFrame:
        return orders.select("prize")

    with pytest.raises(ConfigError, match=r"Pipeline wrong: Spark refuses it: .*`prize`"):
        catch_up(app)
    # PySpark's loggers print to the terminal, and also pass their records to pytest.
    assert not [record for record in caplog.records if "QueryContext" in record.name]


def test_python_code_that_raises_stops_the_pipeline_and_is_named(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic()
    produce(brokers, source, [order(1, 0)])
    app = App(group)

    @F.udf("string")
    def shout(customer: str) -> str:
        raise ValueError(f"nobody shouts at {customer}")

    @app.pipeline(source, value=Order, to=f"{group}.out")
    def loud(orders: DataFrame) -> DataFrame:
        return orders.select(shout("customer").alias("value"))

    said = "its Python code raised ValueError: nobody shouts at c1 in shout"
    with pytest.raises(HandlerError, match=rf"Pipeline loud stopped because {said} \(.*test_streams"):
        catch_up(app)
    assert committed(cluster, group, source) in ({}, {0: 0})


def test_batches_begin_small_and_grow_while_they_are_quick(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = make_topic()
    produce(brokers, source, [order(number, 0) for number in range(60)])
    monkeypatch.setattr("penstock.spark.pipelines.read_sources._FIRST_BATCH", 10)
    app = App(group)

    @app.pipeline(source, value=Order, to=f"{group}.out", micro_batch="10m", max_micro_batch=30)
    def copy(orders: DataFrame) -> DataFrame:
        return orders.select("id")

    finished = of_kind(catch_up(app), events.BatchFinished)
    assert [batch.read for batch in finished] == [10, 30, 20]
    assert [finished[0].next_size, finished[-1].next_size] == [30, 30]
    assert finished[0].lag in (50, 20, 0)  # batches that are confirmed together all report the last lag
    assert finished[-1].lag == 0
