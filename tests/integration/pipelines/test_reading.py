"""The DataFrame that a pipeline's function gets, and records that cannot be read."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from kafka_helpers import CatchUp, MakeTopic, committed, of_kind, produce, read_records
from penstock import App, Table
from penstock.core.reports import events
from penstock.errors import HandlerError
from penstock.kafka import Cluster
from tables import rows


@dataclass
class Order:
    id: int
    customer: str
    amount: float
    currency: str = "EUR"
    note: str | None = None


def order(number: int, **changes: object) -> bytes:
    return json.dumps({"id": number, "customer": f"c{number % 3}", "amount": number / 2, **changes}).encode()


def test_values_are_columns_and_rows_go_to_kafka_as_json_under_their_key(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic(2)
    produce(brokers, source, [order(1), order(2, note="x")], key=b"k")
    produce(brokers, source, [order(3)], partition=1)
    app = App(group)

    @app.pipeline(source, value=Order, to=f"{group}.out")
    def large(orders: DataFrame) -> DataFrame:
        return orders.where("amount >= 1")

    seen = catch_up(app)
    found = {record.key: json.loads(record.value or b"") for record in read_records(brokers, f"{group}.out")}
    assert found == {
        b"k": {"id": 2, "customer": "c2", "amount": 1.0, "currency": "EUR", "note": "x"},
        None: {"id": 3, "customer": "c0", "amount": 1.5, "currency": "EUR"},
    }
    (stopped,) = of_kind(seen, events.Stopped)
    assert (stopped.handler, stopped.read, stopped.written) == ("large", 3, 2)
    assert committed(cluster, group, source) == {0: 2, 1: 1}


def test_a_delta_table_has_each_record_once_over_several_runs(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp, spark: SparkSession, tmp_path: Path
) -> None:
    source = make_topic(2)
    app = App(group)

    @app.pipeline(source, value=Order, to=Table("orders", path=str(tmp_path)))
    def all_orders(orders: DataFrame) -> DataFrame:
        return orders.select("id", "_partition", "_offset")

    for start in (0, 10):
        produce(brokers, source, map(order, range(start, start + 10)), partition=start // 10)
        catch_up(app)
    table = spark.read.format("delta").load(f"{tmp_path}/orders")
    assert sorted(row["id"] for row in rows(table)) == list(range(20))


BAD = [
    b"nonsense",
    b'{"id": 1, "customer": "a"}',
    b'{"id": "one", "customer": "a", "amount": 1}',
    order(1) + b" and more",
    b"[" + order(1) + b"]",
    b"",
    b"null",
    None,
]


def test_records_that_cannot_be_read_go_to_the_dead_letters_as_they_came(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic()
    produce(brokers, source, [order(1), *BAD, order(2)], key=b"k")
    app = App(group)

    @app.pipeline(source, value=Order, to=f"{group}.out", dead_letter=f"{group}.dead")
    def ids(orders: DataFrame) -> DataFrame:
        return orders.select("id")

    seen = catch_up(app)
    assert [record.value for record in read_records(brokers, f"{group}.out")] == [b'{"id":1}', b'{"id":2}']
    dead = read_records(brokers, f"{group}.dead")
    assert [record.value for record in dead] == BAD
    headers = [{name: (value or b"").decode() for name, value in record.headers} for record in dead]
    assert [each["penstock-dlq-offset"] for each in headers] == [str(number) for number in range(1, 9)]
    assert {each["penstock-dlq-topic"] for each in headers} == {source}
    assert headers[0]["penstock-dlq-error-type"] == "Undecodable"
    assert [each["penstock-dlq-error-message"] for each in headers[1:3]] == [
        "Object missing required field `amount`",
        "Expected `int`, got `str` - at `$.id`",
    ]
    (stopped,) = of_kind(seen, events.Stopped)
    assert (stopped.read, stopped.written, stopped.dead_lettered) == (10, 2, 8)


def test_without_dead_letters_such_a_record_stops_the_pipeline_and_is_named(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic()
    produce(brokers, source, [order(1), b"nonsense"])
    app = App(group)

    @app.pipeline(source, value=Order, to=f"{group}.out")
    def ids(orders: DataFrame) -> DataFrame:
        return orders.select("id")

    with pytest.raises(HandlerError, match=rf"Pipeline ids stopped at {source}\[0\]@1: the value is not JSON"):
        catch_up(app)
    assert committed(cluster, group, source) in ({}, {0: 0})
