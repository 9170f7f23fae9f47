"""A backfill reads a range of offsets or of time once, independent of the group."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from kafka_helpers import WAIT_SECONDS, CatchUp, MakeTopic, committed, of_kind, read_values
from penstock import App, Table
from penstock.app.pipelines import Span
from penstock.core.reports import events
from penstock.errors import HandlerError, TopicError
from penstock.kafka import Cluster, make_producer
from tables import rows

# These records are old, and the broker would soon delete them.
FOR_EVER = {"retention.ms": "-1"}


@dataclass
class Order:
    id: int
    day: int


def january(day: int) -> datetime:
    return datetime(2026, 1, day, tzinfo=UTC)


def produce_days(brokers: str, topic: str, days: range, *, partition: int = 0) -> None:
    producer = make_producer(brokers, settings={})
    for day in days:
        value = json.dumps({"id": 100 * partition + day, "day": day}).encode()
        moment = int(january(day).timestamp() * 1000)
        producer.produce(topic, value=value, partition=partition, timestamp=moment)
    assert producer.flush(WAIT_SECONDS) == 0


def counting(group: str, source: str, folder: Path) -> App:
    app = App(group)

    @app.pipeline(source, value=Order, to=Table("days", path=str(folder)))
    def per_day(orders: DataFrame) -> DataFrame:
        days = orders.withWatermark("_timestamp", "1 hour").groupBy("day", "_timestamp")
        return days.count().select("day", "count")

    return app


def test_a_backfill_writes_just_the_range_of_time_and_leaves_the_group_alone(
    brokers: str,
    cluster: Cluster,
    group: str,
    make_topic: MakeTopic,
    catch_up: CatchUp,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    source = make_topic(2, **FOR_EVER)
    produce_days(brokers, source, range(1, 11))
    produce_days(brokers, source, range(4, 8), partition=1)
    app = counting(group, source, tmp_path)
    seen = catch_up(app, span=Span(january(3), january(6)))
    found = {row["day"]: row["count"] for row in rows(spark.read.format("delta").load(f"{tmp_path}/days"))}
    assert found == {3: 1, 4: 2, 5: 2}
    assert committed(cluster, group, source) == {}
    ranges = {(each.partition, each.start, each.end) for each in of_kind(seen, events.RangeRead)}
    assert ranges == {(0, 2, 5), (1, 0, 2)}
    (stopped,) = of_kind(seen, events.Stopped)
    assert (stopped.read, stopped.written) == (5, 3)
    assert [each.backfill for each in of_kind(seen, events.Started)] == [True]
    assert "exactly-once" not in of_kind(seen, events.SinkOpened)[0].guarantee


def test_a_range_of_offsets_is_read_exactly_and_a_missing_one_is_refused(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic(2, **FOR_EVER)
    produce_days(brokers, source, range(1, 6))
    produce_days(brokers, source, range(1, 6), partition=1)
    app = App(group)

    @app.pipeline(source, value=Order, to=f"{group}.out")
    def ids(orders: DataFrame) -> DataFrame:
        return orders.select("id")

    catch_up(app, span=Span({(source, 1): 1}, {(source, 1): 3}))
    assert read_values(brokers, f"{group}.out") == [b'{"id":102}', b'{"id":103}']
    with pytest.raises(TopicError, match=rf"{source}\[0\] holds the offsets 0 to 4, not all of 0 to 8"):
        catch_up(app, span=Span("earliest", {(source, 0): 9}))


def test_a_bad_record_in_the_range_is_dead_lettered_or_stops_it(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp, tmp_path: Path
) -> None:
    source = make_topic(**FOR_EVER)
    produce_days(brokers, source, range(1, 3))
    producer = make_producer(brokers, settings={})
    producer.produce(source, value=b"nonsense")
    assert producer.flush(WAIT_SECONDS) == 0
    with pytest.raises(HandlerError, match=rf"{source}\[0\]@2"):
        catch_up(counting(group, source, tmp_path), span=Span())
    app = App(group)

    @app.pipeline(source, value=Order, to=f"{group}.out", dead_letter=f"{group}.dead")
    def ids(orders: DataFrame) -> DataFrame:
        return orders.select("id")

    (stopped,) = of_kind(catch_up(app, span=Span()), events.Stopped)
    assert (stopped.read, stopped.written, stopped.dead_lettered) == (3, 2, 1)
    assert read_values(brokers, f"{group}.dead") == [b"nonsense"]
