"""Tables that get new columns, and tables whose files are compacted and deleted."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kafka_helpers import CatchUp, MakeTopic, of_kind, produce
from penstock import App, Maintenance, Table
from penstock.core.reports import events
from penstock.errors import PenstockError
from penstock.spark.pipelines import output_batches
from penstock.spark.pipelines.sinks import iceberg
from tables import rows


def writing(group: str, source: str, table: Table, *columns: str) -> App:
    app = App(group)

    @app.pipeline(source, value="id int, amount double, currency string", to=table)
    def copy(orders: DataFrame) -> DataFrame:
        return orders.selectExpr(*columns)

    return app


def order(number: int) -> str:
    return json.dumps({"id": number, "amount": number / 2, "currency": "EUR"})


def read(spark: SparkSession, kind: str, folder: Path) -> list[dict[str, Any]]:
    found = rows(spark.read.format(kind).load(f"{folder}/shop/orders"))
    return sorted(found, key=lambda row: row["id"])


@pytest.mark.parametrize("mode", ["append", "upsert"])
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_new_columns_are_added_and_columns_that_are_gone_are_null(
    kind: Any,
    mode: Any,
    brokers: str,
    group: str,
    make_topic: MakeTopic,
    catch_up: CatchUp,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    source = make_topic()
    keys: dict[str, Any] = {"keys": ["id"], "order_by": "id"} if mode == "upsert" else {}
    table = Table("shop.orders", path=str(tmp_path), format=kind, mode=mode, evolve=True, **keys)
    produce(brokers, source, [order(1)])
    catch_up(writing(group, source, table, "id", "amount"))
    produce(brokers, source, [order(2)])
    catch_up(writing(group, source, table, "id", "currency AS `the-currency`"))
    assert read(spark, kind, tmp_path) == [{"id": 1, "amount": 0.5}, {"id": 2, "the-currency": "EUR"}]


def test_without_evolve_a_new_column_is_refused(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp, spark: SparkSession, tmp_path: Path
) -> None:
    source, table = make_topic(), Table("shop.orders", path=str(tmp_path))
    produce(brokers, source, [order(1)])
    catch_up(writing(group, source, table, "id"))
    produce(brokers, source, [order(2)])
    with pytest.raises(PenstockError, match="evolve=True"):
        catch_up(writing(group, source, table, "id", "amount"))
    assert read(spark, "delta", tmp_path) == [{"id": 1}]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_after_so_many_batches_small_files_become_one_and_old_snapshots_go(
    kind: Any,
    brokers: str,
    group: str,
    make_topic: MakeTopic,
    catch_up: CatchUp,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = iceberg._now()
    monkeypatch.setattr(iceberg, "_now", lambda: now + 2 * 3600)
    source = make_topic()
    keep = "7d" if kind == "delta" else "1h"
    table = Table("shop.orders", path=str(tmp_path), format=kind, maintenance=Maintenance(every=2, keep=keep))
    app = App(group)

    @app.pipeline(source, value="id int", to=table)
    def copy(orders: DataFrame) -> DataFrame:
        return orders.select("id").repartition(6)

    seen = []
    for number in range(2):
        produce(brokers, source, [order(each) for each in range(number * 12, number * 12 + 12)])
        seen.append(catch_up(app))
    assert of_kind(seen[0], events.TableMaintained) == []
    assert not of_kind(seen[1], events.Error)
    (maintained,) = of_kind(seen[1], events.TableMaintained)
    assert maintained.sink == f"{kind} table shop.orders"
    assert [row["id"] for row in read(spark, kind, tmp_path)] == list(range(24))
    folder = f"{tmp_path}/shop/orders"
    if kind == "delta":
        assert len(spark.read.format("delta").load(folder).inputFiles()) == 1
        history = rows(spark.sql(f"DESCRIBE HISTORY delta.`{folder}`").select("operation"))
        assert [each["operation"] for each in history][:3] == ["VACUUM END", "VACUUM START", "OPTIMIZE"]
    else:
        assert spark.read.format("iceberg").load(f"{folder}#files").count() == 1
        assert spark.read.format("iceberg").load(f"{folder}#snapshots").count() == 1


def test_maintenance_that_fails_is_reported_and_the_batch_counts(
    brokers: str,
    group: str,
    make_topic: MakeTopic,
    catch_up: CatchUp,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = make_topic()
    produce(brokers, source, [order(1)])
    table = Table("shop.orders", path=str(tmp_path), maintenance=Maintenance(every=1))
    monkeypatch.setattr(output_batches, "maintain", lambda _, session: session.sql("SELECT * FROM nothing"))
    seen = catch_up(writing(group, source, table, "id"))
    (error,) = of_kind(seen, events.Error)
    assert error.reason.startswith("The maintenance of delta table shop.orders failed: ")
    assert not error.fatal
    assert read(spark, "delta", tmp_path) == [{"id": 1}]
    assert of_kind(seen, events.Stopped)[0].written == 1
