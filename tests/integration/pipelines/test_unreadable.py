"""A few unreadable records are fetched one by one, and the batch is not read again."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kafka_helpers import CatchUp, MakeTopic, committed, of_kind, produce, read_records
from penstock import App
from penstock.core.reports import events
from penstock.kafka import Cluster, make_producer
from penstock.kafka.read.read_records import read_positions


@dataclass
class Order:
    id: int
    amount: float


def order(number: int) -> bytes:
    return json.dumps({"id": number, "amount": number / 2}).encode()


def copying(group: str, *sources: str, **options: Any) -> App:
    app = App(group)

    @app.pipeline(
        *sources, value=options.pop("value", Order), to=f"{group}.out", dead_letter=f"{group}.dead", **options
    )
    def copy(orders: DataFrame) -> DataFrame:
        return orders.select("id")

    return app


def jobs(spark: SparkSession) -> int:
    """How many jobs Spark has begun so far."""
    found = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    return max((found.apply(number).jobId() for number in range(found.size())), default=-1)


def produce_in_transactions(brokers: str, topic: str, values: Iterable[bytes]) -> None:
    """Each value is in a separate transaction, so every other offset is a transaction marker."""
    producer = make_producer(brokers, settings={}, transactional_id=uuid4().hex)
    producer.init_transactions()
    for value in values:
        producer.begin_transaction()
        producer.produce(topic, value=value, partition=0)
        producer.commit_transaction()


def dead_offsets(brokers: str, group: str) -> list[tuple[int, int]]:
    headers = [dict(record.headers) for record in read_records(brokers, f"{group}.dead")]
    return sorted(
        (int(each["penstock-dlq-partition"] or b""), int(each["penstock-dlq-offset"] or b"")) for each in headers
    )


def test_records_are_fetched_by_their_offsets_however_far_apart_they_are(
    brokers: str, cluster: Cluster, make_topic: MakeTopic
) -> None:
    topic = make_topic(2)
    for partition in (0, 1):
        produce(brokers, topic, range(9_000), partition=partition)
    wanted = {(topic, 0): [8_999, 3, 4, 5_000], (topic, 1): [0, 9_500]}
    found = [(record.partition, record.offset, record.value) for record in read_positions(cluster, wanted)]
    assert sorted(found) == [(0, 3, b"3"), (0, 4, b"4"), (0, 5_000, b"5000"), (0, 8_999, b"8999"), (1, 0, b"0")]
    assert list(read_positions(cluster, {})) == []


def test_a_few_unreadable_records_need_no_other_job_than_the_batch_itself(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp, spark: SparkSession
) -> None:
    source, other = make_topic(2), make_topic()
    app = copying(group, source, other)
    produce(brokers, source, map(order, range(100)))
    produce(brokers, source, map(order, range(100)), partition=1)
    before = jobs(spark)
    catch_up(app)
    clean = jobs(spark) - before
    produce(brokers, source, [b"nonsense" if number in (3, 50) else order(number) for number in range(100)])
    produce(brokers, source, [b"nonsense" if number == 99 else order(number) for number in range(100)], partition=1)
    produce(brokers, other, [b"nonsense"])
    seen = catch_up(app)
    assert jobs(spark) - before == 2 * clean
    (stopped,) = of_kind(seen, events.Stopped)
    assert (stopped.read, stopped.written, stopped.dead_lettered) == (201, 197, 4)
    assert dead_offsets(brokers, group) == [(0, 0), (0, 103), (0, 150), (1, 199)]


@pytest.mark.parametrize("how", ["as they are", "counted by id"])
def test_topics_with_transactions_cost_no_other_job_either(
    brokers: str,
    group: str,
    make_topic: MakeTopic,
    catch_up: CatchUp,
    spark: SparkSession,
    how: str,
) -> None:
    whole, gappy = make_topic(), make_topic()
    values = [order(0), b"nonsense", order(2)]
    produce(brokers, whole, values)
    produce_in_transactions(brokers, gappy, values)
    used = []
    for number, source in enumerate((whole, gappy)):
        app = App(f"{group}-{number}")

        @app.pipeline(source, value=Order, to=f"{group}.out", dead_letter=f"{group}.dead", output_mode="update")
        def copy(orders: DataFrame) -> DataFrame:
            return (
                orders.groupBy("id").agg(F.count("amount").alias("times"))
                if how == "counted by id"
                else orders.select("id")
            )

        before = jobs(spark)
        (stopped,) = of_kind(catch_up(app), events.Stopped)
        used.append(jobs(spark) - before)
        assert (stopped.read, stopped.written, stopped.dead_lettered) == (3, 2, 1)
    assert used[0] == used[1]
    assert dead_offsets(brokers, group) == [(0, 1), (0, 2)]


def test_spark_reads_unreadable_records_that_are_too_many_for_the_driver(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.spark.pipelines.read_sources.MAX_POSITIONS", 2)
    source = make_topic()
    produce(brokers, source, [b"nonsense", order(1), b"{}", b"[]"])
    (stopped,) = of_kind(catch_up(copying(group, source)), events.Stopped)
    assert (stopped.read, stopped.written, stopped.dead_lettered) == (4, 1, 3)
    assert dead_offsets(brokers, group) == [(0, 0), (0, 2), (0, 3)]


def test_unreadable_records_beyond_a_limit_become_dead_letters_too(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic()
    produce_in_transactions(brokers, source, [order(0), order(1), b"nonsense"])
    app = App(group)

    @app.pipeline(source, value=Order, to=f"{group}.out", dead_letter=f"{group}.dead")
    def first(orders: DataFrame) -> DataFrame:
        return orders.limit(1).select("id")

    (stopped,) = of_kind(catch_up(app), events.Stopped)
    assert (stopped.written, stopped.dead_lettered) == (1, 1)
    assert dead_offsets(brokers, group) == [(0, 4)]


def test_spark_gives_the_reason_where_only_spark_knows_the_declared_fields(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic()
    produce(brokers, source, [b"nonsense", order(1), b'{"amount": 1}', None])
    catch_up(copying(group, source, value="id bigint NOT NULL, amount double"))
    found = [dict(record.headers)["penstock-dlq-error-message"] for record in read_records(brokers, f"{group}.dead")]
    assert [(text or b"").decode()[:30] for text in found] == [
        "the value is not JSON of the d",
        "the field id is missing or nul",
        "the value is null (a tombstone",
    ]


def test_with_exactly_once_a_few_dead_letters_are_there_once_and_their_group_follows(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic(2)
    produce(brokers, source, [order(0), b"nonsense"])
    produce(brokers, source, [order(2)], partition=1)
    app = copying(group, source, delivery="exactly-once")
    (stopped,) = of_kind(catch_up(app), events.Stopped)
    assert (stopped.read, stopped.written, stopped.dead_lettered) == (3, 2, 1)
    produce(brokers, source, [order(3)])
    catch_up(app)
    assert dead_offsets(brokers, group) == [(0, 1)]
    assert committed(cluster, f"{group}.dead-letters", source) == {0: 3, 1: 1}
