"""Expectations: rows that do not meet one are dropped, dead-lettered or fatal, and counted by the expectation."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import DataFrame

from kafka_helpers import CatchUp, MakeTopic, committed, of_kind, produce, read_records, read_values
from penstock import App
from penstock.app.pipelines import Span
from penstock.core.reports import events
from penstock.errors import ConfigError, HandlerError
from penstock.kafka import Cluster
from penstock.spark.pipelines import read_sources


@dataclass
class Order:
    key: int
    amount: float | None = None


def order(key: int, amount: float | None) -> str:
    return json.dumps({"key": key, "amount": amount})


def copying(group: str, source: str, expect: Any, *, value: Any = Order, **options: Any) -> App:
    app = App(group)

    @app.pipeline(source, value=value, to=f"{group}.out", dead_letter=f"{group}.dead", expect=expect, **options)
    def copy(orders: DataFrame) -> DataFrame:
        return orders.selectExpr("string(key) AS value")

    return app


# The field `key` and the record's key are different columns, and the condition is on the field.
EXPECT = {"key < 100": "drop", "amount > 0": "dead_letter", "_offset >= 0": "fail"}


@pytest.mark.parametrize("most", [read_sources.MAX_POSITIONS, 1], ids=["fetched by the driver", "read again"])
def test_each_row_is_judged_by_the_first_expectation_that_it_does_not_meet(
    most: int,
    brokers: str,
    group: str,
    make_topic: MakeTopic,
    catch_up: CatchUp,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(read_sources, "MAX_POSITIONS", most)
    source = make_topic()
    values = [order(1, 5), order(2, -1), order(3, None), order(100, -1), order(101, 5), "nonsense"]
    produce(brokers, source, values, key=b"a key that is no number")
    app = copying(group, source, EXPECT)
    seen = catch_up(app)
    assert read_values(brokers, f"{group}.out") == [b"1"]
    failed = {each.expectation: each.rows for each in of_kind(seen, events.ExpectationFailed)}
    # 100 does not meet two of them, and is counted for both.
    assert failed == {"key < 100": 2, "amount > 0": 3}
    (stopped,) = of_kind(seen, events.Stopped)
    assert (stopped.read, stopped.written, stopped.dead_lettered, stopped.skipped) == (6, 1, 3, 2)
    found = {record.value: dict(record.headers) for record in read_records(brokers, f"{group}.dead")}
    assert list(found) == [values[1].encode(), values[2].encode(), b"nonsense"]
    why = found[values[1].encode()]
    assert why["penstock-dlq-error-message"] == b"the row does not meet the expectation `amount > 0`"
    assert why["penstock-dlq-error-type"] == b"ExpectationFailed"
    assert found[b"nonsense"]["penstock-dlq-error-type"] == b"Undecodable"
    again = catch_up(app, span=Span())
    assert len(of_kind(again, events.ExpectationFailed)) == 2


def test_a_fatal_one_stops_the_pipeline_and_names_the_record(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic()
    produce(brokers, source, [order(1, 5), order(2, -1)])
    app = copying(group, source, {"amount > 0": "fail"})
    with pytest.raises(HandlerError, match=rf"stopped at {source}\[0\]@1: the row does not meet .*`amount > 0`"):
        catch_up(app)
    assert committed(cluster, group, source) in ({}, {0: 0})


def test_tombstones_are_not_checked(brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp) -> None:
    source = make_topic()
    produce(brokers, source, [None, order(1, 5)])
    seen = catch_up(copying(group, source, {"key IS NOT NULL": "fail"}, value=Order | None))
    assert of_kind(seen, events.Stopped)[0].read == 2


@pytest.mark.parametrize(
    ("expectation", "problem"),
    [
        ("amoun > 0", r"Spark refuses the expectation 'amoun > 0': .*`amoun`"),
        ("amount >", r"Spark refuses the expectation 'amount >'"),
        ("amount + 1", r"'amount \+ 1' is of type double, not a condition"),
    ],
)
def test_a_condition_that_spark_cannot_evaluate_is_one_error_before_anything_runs(
    expectation: str, problem: str, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        catch_up(copying(group, make_topic(), {expectation: "drop"}))
    assert "over the columns key, amount, _key" in caught.value.hint
