"""A real schema registry is killed while Spark runs. Handlers and pipelines wait for it, and then continue."""

import json
import threading
from collections.abc import Callable
from typing import Any

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from pyspark.sql import DataFrame, SparkSession

from kafka_helpers import WAIT_SECONDS, MakeTopic, of_kind, produce, read_records, wait_for
from penstock import App, Avro
from penstock import spark as engine
from penstock.codecs import codec_of
from penstock.core.reports import events
from penstock.devkit import Embedded
from penstock.kafka import Cluster
from registry_outage import killed

FIELDS = [{"name": "id", "type": "int"}, {"name": "name", "type": "string"}]


def writers(registry: str, *names: str) -> list[Callable[[int], bytes]]:
    """Values of schemas under separate subjects, so that the app cannot know them before the records."""
    bare = codec_of(
        Avro({"type": "record", "name": "Any", "fields": FIELDS}, schema_id=None),
        registry=None,
        field="value",
        topic="any",
    )
    made: list[Callable[[int], bytes]] = []
    with SchemaRegistryClient({"url": registry}) as client:
        for name in names:
            text = json.dumps({"type": "record", "name": name, "fields": FIELDS})
            stamp = b"\x00" + client.register_schema(name, Schema(text, "AVRO")).to_bytes(4, "big")
            made.append(lambda number, stamp=stamp: stamp + bare.encode({"id": number, "name": "Ann"})[0])  # type: ignore[misc]
    return made


def test_while_the_registry_is_down_handlers_and_pipelines_wait_and_nothing_is_lost(
    brokers: str,
    kafka: Embedded,
    registry: str,
    cluster: Cluster,
    group: str,
    make_topic: MakeTopic,
    spark: SparkSession,
) -> None:
    source, dlq = make_topic(), f"{group}.dlq"
    known, strange = writers(registry, f"known_{group[6:]}", f"strange_{group[6:]}")
    reader = {"type": "record", "name": "Customer", "fields": FIELDS}
    names = [f"known_{group[6:]}", f"strange_{group[6:]}"]
    app = App(group, registry={"url": registry, "timeout": 1.0})

    @app.consume(source, value=Avro(), to=f"{group}.handled", dead_letter=dlq)
    def handle(customer: dict[str, Any]) -> str:
        return f"{customer['id']}"

    @app.pipeline(
        source,
        value=Avro({**reader, "aliases": names}),
        to=f"{group}.piped",
        dead_letter=f"{dlq}2",
        group=f"{group}.pipeline",
    )
    def pipe(customers: DataFrame) -> DataFrame:
        return customers.selectExpr("cast(id AS string) AS value")

    seen: list[events.Event] = []
    stop = threading.Event()
    thread = threading.Thread(
        target=engine.run,
        args=(app,),
        kwargs={"brokers": brokers, "emit": seen.append, "stop": stop, "session": spark},
        daemon=True,
    )
    produce(brokers, source, [known(0)])
    thread.start()
    try:
        wait_for(lambda: len(of_kind(seen, events.BatchFinished)) > 1, "the first record in both")
        with killed(kafka):
            produce(brokers, source, [each(number) for number in range(1, 10) for each in (known, strange)])
            wait_for(lambda: len(_waits(seen)) > 1, "a pipeline that waits")
        everything = {str(number).encode() for number in range(10)}
        wait_for(lambda: _of(brokers, f"{group}.handled") == everything, "all that the handler makes")
        wait_for(lambda: _of(brokers, f"{group}.piped") == everything, "all that the pipeline makes")
        wait_for(lambda: cluster.lag(group, [source]) == 0, "the handler's last commit")
        wait_for(lambda: cluster.lag(f"{group}.pipeline", [source]) == 0, "the pipeline's last commit")
    finally:
        stop.set()
        thread.join(WAIT_SECONDS)
    assert not thread.is_alive()
    assert f"the schema registry at {registry} cannot be asked" in _waits(seen)[0].reason
    assert not read_records(brokers, dlq)
    assert not read_records(brokers, f"{dlq}2")
    handled = [record.value for record in read_records(brokers, f"{group}.handled")]
    assert len(handled) == 19, "each once"


def _waits(seen: list[events.Event]) -> list[events.Restarting]:
    return [each for each in of_kind(seen, events.Restarting) if "registry" in each.reason]


def _of(brokers: str, topic: str) -> set[bytes | None]:
    return {record.value for record in read_records(brokers, topic)}
