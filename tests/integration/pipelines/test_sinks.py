"""Each sink with batches that are repeated after a failure, and with a deleted checkpoint."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import DataFrame, SparkSession

from kafka_helpers import CatchUp, MakeTopic, of_kind, produce, read_values
from penstock import App, Jdbc, Table, Topic
from penstock.app import Sink
from penstock.core.reports import events
from penstock.errors import HandlerError
from penstock.spark.pipelines import output_batches
from postgres import Postgres
from tables import rows


@dataclass
class Order:
    id: int
    amount: float


def orders(*numbers: int) -> list[str]:
    return [json.dumps({"id": number, "amount": number / 2}) for number in numbers]


@dataclass(frozen=True)
class Case:
    """A sink, and a function that reads its rows."""

    sink: Sink
    read: Callable[[], list[dict[str, Any]]]


MakeCase = Callable[..., Case]


@pytest.fixture
def make_case(spark: SparkSession, tmp_path: Path, postgres: Postgres) -> MakeCase:
    def in_postgres(**options: Any) -> Case:
        table = f"orders_{uuid4().hex[:8]}"
        postgres.sql(f"CREATE TABLE {table} (id bigint {'PRIMARY KEY' if options else ''}, amount double precision)")
        sink = Jdbc(postgres.url, table, user="postgres", **options)
        names = ("id", "amount")
        return Case(
            sink,
            lambda: [
                dict(zip(names, map(float, row), strict=True))
                for row in postgres.sql(f"SELECT id, amount FROM {table}")
            ],
        )

    def make(kind: str, **options: Any) -> Case:
        if kind == "postgres":
            return in_postgres(**options)
        layout = {} if options else {"partition_by": ["id"]}
        sink = Table("shop.orders", path=str(tmp_path), format=kind, **options, **layout)  # type: ignore[arg-type]
        return Case(sink, lambda: rows(_read(spark, kind, tmp_path).select("id", "amount")))

    return make


def _read(spark: SparkSession, kind: str, folder: Path) -> DataFrame:
    return spark.read.format(kind).load(f"{folder}/shop/orders")


def copying(group: str, source: str, sink: Sink) -> App:
    app = App(group)

    @app.pipeline(source, value=Order, to=sink, dead_letter=f"{group}.dead")
    def copy(orders: DataFrame) -> DataFrame:
        return orders.select("id", "amount")

    return app


@contextmanager
def failing_after_the_first_write() -> Iterator[None]:
    """The sink has written the batch, but Spark sees an error."""
    write, written = output_batches.OutputWriter._write_rows, []

    def write_and_fail(*arguments: Any) -> None:
        write(*arguments)
        written.append(arguments)
        if len(written) == 1:
            raise OSError("the driver was lost")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output_batches.OutputWriter, "_write_rows", write_and_fail)
        yield


@pytest.mark.parametrize("kind", ["delta", "iceberg", "parquet", "postgres"])
def test_a_repeated_batch_is_written_once_and_a_new_checkpoint_hides_nothing(
    kind: str,
    brokers: str,
    group: str,
    make_topic: MakeTopic,
    catch_up: CatchUp,
    make_case: MakeCase,
    tmp_path: Path,
) -> None:
    source, case, checkpoint = make_topic(2), make_case(kind), tmp_path / "checkpoint"
    app = copying(group, source, case.sink)
    produce(brokers, source, [*orders(1, 2), "nonsense"])
    produce(brokers, source, orders(3), partition=1)
    with failing_after_the_first_write():
        seen = catch_up(app, checkpoint=checkpoint)
    (again,) = of_kind(seen, events.Restarting)
    assert "the driver was lost" in again.reason
    assert sorted(row["id"] for row in case.read()) == [1, 2, 3]
    assert read_values(brokers, f"{group}.dead") == [b"nonsense"], "the dead letter is written, the batch is not"
    shutil.rmtree(checkpoint)
    produce(brokers, source, orders(4, 5), partition=1)
    catch_up(app, checkpoint=checkpoint)
    assert sorted(row["id"] for row in case.read()) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("kind", ["delta", "iceberg", "postgres"])
def test_an_upsert_leaves_the_last_row_of_each_key(
    kind: str,
    brokers: str,
    group: str,
    make_topic: MakeTopic,
    catch_up: CatchUp,
    make_case: MakeCase,
) -> None:
    source, case = make_topic(), make_case(kind, mode="upsert", keys=["id"], order_by="amount")
    app = copying(group, source, case.sink)

    def put(*values: tuple[int, float]) -> None:
        produce(brokers, source, [json.dumps({"id": key, "amount": amount}) for key, amount in values])

    put((1, 1.0), (2, 1.0), (1, 2.0), (1, 3.0))
    with failing_after_the_first_write():
        catch_up(app)
    put((2, 5.0), (3, 1.0), (1, 2.5))
    catch_up(app)
    # The last row of key 1 has an older value in its order column, as in a backfill. It does not replace the newer one.
    assert {row["id"]: row["amount"] for row in case.read()} == {1: 3.0, 2: 5.0, 3: 1.0}
    assert len(case.read()) == 3


def test_without_an_order_column_the_offset_decides_which_row_is_last_and_without_both_it_is_an_error(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp, spark: SparkSession, tmp_path: Path
) -> None:
    source = make_topic()
    produce(brokers, source, [*orders(1, 2), json.dumps({"id": 1, "amount": 9})])
    table = Table("orders", path=str(tmp_path), mode="upsert", keys=["id"])
    app = App(group)

    @app.pipeline(source, value=Order, to=table)
    def with_place(orders: DataFrame) -> DataFrame:
        return orders.select("id", "amount", "_offset")

    catch_up(app)
    found = rows(spark.read.format("delta").load(f"{tmp_path}/orders"))
    assert {row["id"]: row["amount"] for row in found} == {1: 9.0, 2: 1.0}
    blind = copying(f"{group}-blind", source, Table("blind", path=str(tmp_path), mode="upsert", keys=["id"]))
    with pytest.raises(HandlerError, match=r"several rows for one key of delta table blind.*\"id\":1"):
        catch_up(blind)


def test_rows_for_kafka_are_written_as_they_are_and_may_choose_their_topic(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source, other = make_topic(), make_topic()
    produce(brokers, source, ["a", "b"])
    app = App(group)

    @app.pipeline(source, value=str, to=Topic(f"{group}.out"))
    def route(texts: DataFrame) -> DataFrame:
        return texts.selectExpr("value", f"if(value = 'a', '{other}', '{group}.out') AS topic")

    catch_up(app)
    assert (read_values(brokers, other), read_values(brokers, f"{group}.out")) == ([b"a"], [b"b"])
