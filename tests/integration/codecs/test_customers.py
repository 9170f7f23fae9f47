"""Customers with a user's decoder and as Avro, on the local engine, and with a registry that restarts."""

import json
import struct
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from kafka_helpers import MakeTopic, catch_up, of_kind, produce, read_records, running, wait_for
from penstock import App, Avro, Record, Registry
from penstock.codecs import codec_of
from penstock.core.reports import events
from penstock.devkit import Embedded
from penstock.kafka import Cluster
from registry_outage import frozen, killed

pytestmark = pytest.mark.long

TOO_SHORT = (
    "the decoder of the value failed: error: unpack_from requires a buffer of at least 8 bytes for unpacking "
    "8 bytes at offset 0 (actual buffer size is {})"
)


@dataclass
class Customer:
    id: int
    name: str


def schema_of(name: str = "Customer", **defaults: Any) -> dict[str, Any]:
    fields = [{"name": "id", "type": "int"}, {"name": "name", "type": "string"}]
    more = [{"name": field, "type": "string", "default": value} for field, value in defaults.items()]
    return {"type": "record", "name": name, "fields": [*fields, *more]}


def reason_of(letter: Record) -> tuple[bytes | None, str]:
    return letter.value, (dict(letter.headers)["penstock-dlq-error-message"] or b"").decode()


def decode(data: bytes) -> Customer:
    number, length = struct.unpack_from(">ii", data)
    if len(data) != 8 + length:
        raise ValueError(f"the name should take {length} bytes, and takes {len(data) - 8}")
    return Customer(number, data[8:].decode())


def test_customers_by_a_user_s_decoder(brokers: str, group: str, make_topic: MakeTopic) -> None:
    source, out, dlq, app = make_topic(), f"{group}.out", f"{group}.dlq", App(group)

    @app.consume(source, value=decode, key=int, to=out, dead_letter=dlq)
    def greet(customer: Customer, key: int) -> str:
        return f"{key}: {customer.id} {customer.name}"

    good = struct.pack(">ii", 7, 3) + b"Ann"
    produce(brokers, source, [good, good[:-1], b"abc", good], key=b"42")
    catch_up(app, brokers)
    assert [record.value for record in read_records(brokers, out)] == [b"42: 7 Ann"] * 2
    assert [reason_of(letter) for letter in read_records(brokers, dlq)] == [
        (good[:-1], "the decoder of the value failed: ValueError: the name should take 3 bytes, and takes 2"),
        (
            b"abc",
            TOO_SHORT.format(3),
        ),
    ]


def test_customers_as_avro(brokers: str, registry: str, group: str, make_topic: MakeTopic) -> None:
    source, out, dlq = make_topic(), f"{group}.out", f"{group}.dlq"
    settings = Registry(url=registry)
    older = codec_of(Avro(schema_of(), register=True), registry=settings, field="value", topic=source)
    newest = schema_of(country="DE")
    app = App(group, registry=registry)

    @app.consume(source, value=Avro(newest), to=out, to_value=Avro(newest, register=True), dead_letter=dlq)
    def move(customer: dict[str, Any]) -> dict[str, Any]:
        return {**customer, "name": customer["name"].upper()}

    good, _ = older.encode({"id": 7, "name": "Ann"})
    bad = [good[:-1], b"\x00\x00\x0f\x42\x3fx", b'{"id":7}', b"", None]
    produce(brokers, source, [good, *bad, good])
    catch_up(app, brokers)
    reading = codec_of(Avro(), registry=settings, field="value")
    assert [reading.decode(record.value or b"", None) for record in read_records(brokers, out)] == [
        {"id": 7, "name": "ANN", "country": "DE"}
    ] * 2
    letters = dict(reason_of(letter) for letter in read_records(brokers, dlq))
    assert list(letters) == bad, "as they came"
    assert list(letters.values()) == [
        "expected string, but the value ends there (2 of 3 bytes) - at `$.name`",
        f"the schema id 999999 is not in the registry at {registry}",
        "the value begins with the byte 0x7b, not 0x00: it was not written with a schema registry",
        "the value is empty: it was not written with a schema registry",
        "the value is null (a tombstone); to accept null, write `| None` in the type hint",
    ]


class Schemas:
    """Two schemas in the registry; the app first meets the second while the registry is down."""

    def __init__(self, registry: str, group: str) -> None:
        with SchemaRegistryClient({"url": registry}) as client:
            ids = [
                client.register_schema(name, Schema(json.dumps(schema_of(name)), "AVRO"))
                for name in (f"known_{group[6:]}", f"strange_{group[6:]}")  # which no test has met yet
            ]
        bare = codec_of(Avro(schema_of(), schema_id=None), registry=None, field="value", topic=group)
        self.known, self.strange = (self._writer(schema_id, bare) for schema_id in ids)

    @staticmethod
    def _writer(schema_id: int, bare: Any) -> Any:
        return lambda number: b"\x00" + schema_id.to_bytes(4, "big") + bare.encode({"id": number, "name": "Ann"})[0]


@pytest.mark.parametrize("away", [killed, frozen])
@pytest.mark.parametrize("is_async", [False, True])
def test_an_unavailable_registry_delays_only_records_that_need_it_and_loses_none(
    brokers: str, kafka: Embedded, registry: str, cluster: Cluster, group: str, make_topic: MakeTopic, away: Any,
    *, is_async: bool,
) -> None:  # fmt: skip
    source, dlq = make_topic(), f"{group}.dlq"
    schemas = Schemas(registry, group)
    app = App(group, registry={"url": registry, "timeout": 1.0})
    seen: list[tuple[int, int]] = []

    def handle(customer: Customer, record: Record) -> None:
        seen.append((customer.id, record.attempt))

    async def handle_async(customer: Customer, record: Record) -> None:
        handle(customer, record)

    options: dict[str, Any] = {"value": Avro(), "order": "key", "dead_letter": dlq, "retry_topics": ["1s"]}
    app.consume(source, **options)(handle_async if is_async else handle)

    produce(brokers, source, [schemas.known(0)], key=b"a")
    with running(app, brokers) as run:
        wait_for(lambda: seen, "the first record")
        with away(kafka):
            produce(brokers, source, [schemas.strange(n) for n in range(100, 120)], key=b"b")
            (blocked, *_) = wait_for(lambda: of_kind(run.events, events.AwaitingDependency), "a blocked record")
            for n in range(1, 51):
                produce(brokers, source, [schemas.known(n)], key=b"a")
            wait_for(lambda: len(seen) == 51, "records that need no registry")
            wait_for(lambda: len(of_kind(run.events, events.AwaitingDependency)) > 3, "a while")
        wait_for(lambda: len(seen) == 71, "all records")
    assert f"the schema registry at {registry} cannot be asked" in blocked.reason
    assert seen == [(n, 1) for n in (*range(51), *range(100, 120))], "each once, in order, at its first attempt"
    assert cluster.lag(group, [source]) == 0
    assert not read_records(brokers, dlq)
    assert not of_kind(run.events, events.Retried)
    assert not of_kind(run.events, events.Postponed)
