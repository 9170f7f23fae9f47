"""Tables that get new columns, and tables whose files are compacted and deleted."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kafka_helpers import CatchUp, MakeTopic, of_kind, produce
from penstock import App, BatchId, Maintenance, Table
from penstock.core.reports import events
from penstock.errors import ConfigError
from penstock.spark.pipelines import output_batches
from penstock.spark.pipelines.sinks import iceberg, maintain, writer_for
from tables import rows

NAME = "shop.orders"


def write(spark: SparkSession, table: Table, number: int, query: str) -> bool:
    """Write a batch as a pipeline would."""
    return writer_for(table, {}).write(spark.sql(query), BatchId("group/copy", "checkpoint", number))


def read(spark: SparkSession, table: Table) -> list[dict[str, Any]]:
    found = rows(spark.read.format(table.format).load(f"{table.path}/shop/orders"))
    return sorted(found, key=lambda row: row["id"])


@pytest.mark.parametrize("mode", ["append", "upsert"])
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_new_columns_are_added_and_columns_that_are_gone_are_null(
    kind: Any, mode: Any, spark: SparkSession, tmp_path: Path
) -> None:
    keys: dict[str, Any] = {"keys": ["id"], "order_by": "id"} if mode == "upsert" else {}
    table = Table(NAME, path=str(tmp_path), format=kind, mode=mode, evolve=True, **keys)
    write(spark, table, 0, "SELECT 1 AS id, 0.5D AS amount")
    later = "SELECT 2 AS id, 'EUR' AS `the-currency`"
    write(spark, table, 1, later)
    expected = [{"id": 1, "amount": 0.5}, {"id": 2, "the-currency": "EUR"}]
    assert read(spark, table) == expected
    # A repeated batch finds its columns and its rows.
    write(spark, table, 1, later)
    assert read(spark, table) == expected


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_without_evolve_a_new_column_is_refused_with_its_name(kind: Any, spark: SparkSession, tmp_path: Path) -> None:
    # In a URL, these characters would be escaped; Hadoop would take the escapes for the folder's name.
    table = Table(NAME, path=str(tmp_path / "käse + brot"), format=kind)
    write(spark, table, 0, "SELECT 1 AS id")
    with pytest.raises(ConfigError, match="columns that it has not: amount") as caught:
        write(spark, table, 1, "SELECT 2 AS id, 0.5D AS amount")
    assert "evolve=True" in caught.value.hint
    assert read(spark, table) == [{"id": 1}]


def test_a_delta_table_is_compacted_and_its_old_files_are_looked_for(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(NAME, path=str(tmp_path), maintenance=Maintenance())
    for number in range(2):
        write(spark, table, number, f"SELECT id FROM RANGE({number * 3}, {number * 3 + 3}, 1, 3)")
    maintain(table, spark)
    folder = f"{tmp_path}/shop/orders"
    assert [row["id"] for row in read(spark, table)] == list(range(6))
    assert len(spark.read.format("delta").load(folder).inputFiles()) == 1
    operations = rows(spark.sql(f"DESCRIBE HISTORY delta.`{folder}`").select("operation"))
    assert {"OPTIMIZE", "VACUUM END"} <= {each["operation"] for each in operations}


def test_an_iceberg_table_is_compacted_and_only_old_snapshots_go(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table(NAME, path=str(tmp_path), format="iceberg", maintenance=Maintenance(keep="1h"))
    folder = f"{tmp_path}/shop/orders"

    def count(of: str) -> int:
        return spark.read.format("iceberg").load(f"{folder}#{of}").count()

    for number in range(2):
        write(spark, table, number, f"SELECT id FROM RANGE({number * 3}, {number * 3 + 3}, 1, 3)")
    maintain(table, spark)
    assert [row["id"] for row in read(spark, table)] == list(range(6))
    assert (count("files"), count("snapshots")) == (1, 4)  # the table was made, written twice and compacted
    # The batch is still known.
    assert not write(spark, table, 1, "SELECT id FROM RANGE(3)")
    now = iceberg._now()
    monkeypatch.setattr(iceberg, "_now", lambda: now + 2 * 3600)
    maintain(table, spark)
    assert (count("files"), count("snapshots")) == (1, 1)
    assert [row["id"] for row in read(spark, table)] == list(range(6))


def test_maintenance_runs_after_its_batches_and_a_failure_of_it_is_reported_and_fails_no_batch(
    brokers: str,
    group: str,
    make_topic: MakeTopic,
    catch_up: CatchUp,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = make_topic()
    table = Table(NAME, path=str(tmp_path), maintenance=Maintenance(every=2))
    maintained: list[Table] = []
    monkeypatch.setattr(output_batches, "maintain", lambda each, _: maintained.append(each))
    app = App(group)

    @app.pipeline(source, value="id int", to=table)
    def copy(orders: DataFrame) -> DataFrame:
        return orders.select("id")

    def next_batch(number: int) -> list[events.Event]:
        produce(brokers, source, [f'{{"id": {number}}}'])
        return catch_up(app)

    assert of_kind(next_batch(0), events.TableMaintained) == []
    (reported,) = of_kind(next_batch(1), events.TableMaintained)
    assert (maintained, reported.sink) == ([table], f"delta table {NAME}")
    next_batch(2)
    monkeypatch.setattr(output_batches, "maintain", lambda _, session: session.sql("SELECT * FROM nothing"))
    seen = next_batch(3)
    (error,) = of_kind(seen, events.Error)
    assert error.reason.startswith(f"The maintenance of delta table {NAME} failed: ")
    assert not error.fatal
    assert of_kind(seen, events.Stopped)[0].written == 1
    assert [row["id"] for row in read(spark, table)] == [0, 1, 2, 3]
