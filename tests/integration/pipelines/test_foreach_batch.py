"""Your own function as a sink: a repeated batch has the same rows and the same id."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import DataFrame

from kafka_helpers import CatchUp, MakeTopic, committed, of_kind, produce, read_values
from penstock import App, BatchId, ForeachBatch, Retry
from penstock.core.reports import events
from penstock.errors import HandlerError
from penstock.kafka import Cluster
from tables import rows as rows_of


@dataclass
class Order:
    id: int


def order(number: int) -> str:
    return json.dumps({"id": number})


def saving(group: str, source: str, save: Any, **options: Any) -> App:
    app = App(group)

    @app.pipeline(source, value=Order, to=ForeachBatch(save), dead_letter=f"{group}.dead", **options)
    def copy(orders: DataFrame) -> DataFrame:
        return orders.select("id")

    return app


def test_a_batch_that_failed_comes_again_with_its_rows_and_its_id_and_is_counted_once(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic()
    calls: list[tuple[BatchId, int, list[int]]] = []
    produce(brokers, source, [order(1), "nonsense", order(2)])

    def save(rows: DataFrame, batch: BatchId) -> None:
        # Reads the rows twice, which Penstock allows without reading Kafka twice.
        calls.append((batch, rows.count(), sorted(row["id"] for row in rows_of(rows))))
        if len(calls) == 1:
            raise ConnectionError("the warehouse does not answer")

    seen = catch_up(saving(group, source, save, restart=Retry(attempts=3, first="1ms")))
    (first, *_), (again, *_) = calls
    assert (first, calls[0]) == (again, calls[1])
    assert (first.pipeline, first.number, str(first)) == (f"{group}/copy", 0, f"{first.incarnation}-0")
    assert [call[1:] for call in calls] == [(2, [1, 2])] * 2
    (restarting,) = of_kind(seen, events.Restarting)
    assert "The function save raised ConnectionError: the warehouse does not answer" in restarting.reason
    (stopped,) = of_kind(seen, events.Stopped)
    assert (stopped.read, stopped.written, stopped.dead_lettered) == (3, 2, 1)
    assert read_values(brokers, f"{group}.dead") == [b"nonsense"]
    (opened,) = of_kind(seen, events.SinkOpened)
    assert (opened.sink, opened.guarantee.split(":")[0]) == ("function save", "at-least-once")
    # The next batch has another number, in the same checkpoint.
    produce(brokers, source, [order(3)])
    catch_up(saving(group, source, save))
    assert (calls[-1][0].incarnation, calls[-1][0].number) == (first.incarnation, 1)
    assert committed(cluster, group, source) == {0: 4}


def test_a_function_that_always_fails_stops_the_pipeline_and_commits_nothing(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic()
    produce(brokers, source, [order(1)])

    def save(rows: DataFrame, batch: BatchId) -> None:
        raise KeyError("warehouse")

    with pytest.raises(HandlerError, match=r"function save raised KeyError: 'warehouse' in batch .*-0") as caught:
        catch_up(saving(group, source, save, restart=Retry(attempts=1)))
    assert "the same id" in caught.value.hint
    assert committed(cluster, group, source) in ({}, {0: 0})
