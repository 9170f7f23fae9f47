"""Penstock's codecs and Confluent's serializers read each other's records, with a real registry."""

import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
    topic_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from penstock import Avro, JsonSchema, Protobuf, Reference, Registry
from penstock.codecs import codec_of
from penstock.core.failures.outcome import DependencyUnavailable, Undecodable
from penstock.serde import Format
from protobuf_messages import Item, NewerOrder, Order

STRATEGIES = {
    "topic": topic_subject_name_strategy,
    "record": record_subject_name_strategy,
    "topic-record": topic_record_subject_name_strategy,
}


def record(*fields: dict[str, Any], name: str = "Customer") -> dict[str, Any]:
    return {"type": "record", "name": name, "namespace": "shop", "fields": list(fields)}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


CUSTOMER = record(field("id", "int"), field("name", "string"))
# One field has a wider type, one is renamed, one is new.
NEWER = record(
    field("id", "long"), field("full_name", "string", aliases=["name"]), field("vip", "boolean", default=False)
)
ANN = {"id": 7, "name": "Ann-Kathrin"}
JSON = {"title": "Customer", "type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
ORDER = Order(id=7, customer="Ann", items=[{"sku": "x", "count": 2}], total={"cents": 150, "currency": "EUR"})


@pytest.fixture
def client(registry: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry}) as client:
        yield client


@pytest.fixture
def topic() -> str:
    return f"topic-{uuid4().hex[:8]}"


class Theirs:
    """Confluent's serializers for one topic."""

    def __init__(self, client: SchemaRegistryClient, subject: str) -> None:
        self._client = client
        self.conf: dict[str, Any] = {"subject.name.strategy": STRATEGIES[subject]}

    def write(self, format_: Format, value: Any, context: SerializationContext) -> Any:
        match format_:
            case Avro(schema=schema):
                return AvroSerializer(self._client, str(schema), conf=self.conf)(value, context)
            case JsonSchema(schema=schema):
                return JSONSerializer(str(schema), self._client, conf=self.conf)(value, context)
            case Protobuf(message=message):
                return ProtobufSerializer(message, self._client, self.conf)(value, context)
        raise TypeError

    def read(self, format_: Format, data: bytes, context: SerializationContext) -> Any:
        match format_:
            case Avro():
                return AvroDeserializer(self._client, conf=self.conf)(data, context)
            case JsonSchema():
                return JSONDeserializer(None, schema_registry_client=self._client, conf=self.conf)(data, context)
            case Protobuf(message=message):
                return ProtobufDeserializer(message, self.conf, self._client)(data, context)
        raise TypeError


FORMATS: list[tuple[Callable[..., Format], Any]] = [
    (lambda **options: Avro(CUSTOMER, **options), ANN),
    (lambda **options: JsonSchema(JSON, **options), {"id": 7}),
    (lambda **options: Protobuf(Order, **options), ORDER),
    (lambda **options: Protobuf(Item, **options), Item(sku="x", count=2)),
]


@pytest.mark.parametrize("subject", STRATEGIES)
@pytest.mark.parametrize(("make", "value"), FORMATS)
def test_penstock_reads_what_confluents_serializers_write(
    registry: str, client: SchemaRegistryClient, topic: str, make: Any, value: Any, subject: str
) -> None:
    context = SerializationContext(topic, MessageField.VALUE, [])
    data = Theirs(client, subject).write(make(), value, context)
    assert data is not None
    assert codec_of(make(), registry=Registry(url=registry), field="value").decode(data, None) == value


@pytest.mark.parametrize("schema_id", ["value", "headers"])
@pytest.mark.parametrize("subject", STRATEGIES)
@pytest.mark.parametrize(("make", "value"), FORMATS)
def test_confluents_deserializers_read_what_penstock_writes(
    registry: str, client: SchemaRegistryClient, topic: str, make: Any, value: Any, subject: str, schema_id: str
) -> None:
    format_ = make(subject=subject, schema_id=schema_id, register=True)
    codec = codec_of(format_, registry=Registry(url=registry), field="key", topic=topic)
    data, headers = codec.encode(value)
    context = SerializationContext(topic, MessageField.KEY, list(headers))
    assert Theirs(client, subject).read(format_, data, context) == value
    assert codec.decode(data, headers) == value


def test_a_reader_s_schema_takes_what_older_ones_wrote(registry: str, client: SchemaRegistryClient, topic: str) -> None:
    data = Theirs(client, "topic").write(Avro(CUSTOMER), ANN, SerializationContext(topic, MessageField.VALUE, []))
    assert data is not None
    found = codec_of(Avro(NEWER), registry=Registry(url=registry), field="value").decode(data, None)
    assert found == {"id": 7, "full_name": "Ann-Kathrin", "vip": False}
    narrower = codec_of(Avro(record(field("id", "string"))), registry=Registry(url=registry), field="value")
    with pytest.raises(Undecodable, match=r"expected string, was written as int - at `\$.id`"):
        narrower.decode(data, None)


def test_confluents_newer_readers_read_what_penstock_wrote_with_an_older_schema(
    registry: str, client: SchemaRegistryClient, topic: str
) -> None:
    context, conf = SerializationContext(topic, MessageField.VALUE, []), Theirs(client, "topic").conf
    settings = Registry(url=registry)
    old = codec_of(Avro(CUSTOMER, register=True), registry=settings, field="value", topic=topic)
    reader = AvroDeserializer(client, json.dumps(NEWER), conf=conf)
    assert reader(old.encode(ANN)[0], context) == {"id": 7, "full_name": "Ann-Kathrin", "vip": False}
    orders = codec_of(Protobuf(Order, register=True), registry=settings, field="value", topic=f"{topic}-2")
    found = ProtobufDeserializer(NewerOrder, conf, client)(orders.encode(ORDER)[0], context)
    assert (found.id, found.customer, found.vip) == (7, "Ann", False)


def test_a_topic_of_several_schemas_is_read_as_one(registry: str, topic: str) -> None:
    settings = Registry(url=registry)
    newer = record(field("id", "int"), field("name", "string"), field("vip", "boolean", default=False))
    written = [
        codec_of(Avro(schema, register=True), registry=settings, field="value", topic=topic).encode(value)[0]
        for schema, value in ((CUSTOMER, ANN), (newer, {**ANN, "vip": True}))
    ]
    assert written[0][:5] != written[1][:5]
    reading = codec_of(Avro(newer), registry=settings, field="value")
    assert [reading.decode(data, None)["vip"] for data in written] == [False, True]


def test_protobuf_s_fields_come_and_go(registry: str, topic: str) -> None:
    settings = Registry(url=registry)
    old, _ = codec_of(Protobuf(Order, register=True), registry=settings, field="value", topic=topic).encode(ORDER)
    found = codec_of(Protobuf(NewerOrder), registry=settings, field="value").decode(old, None)
    assert (found.id, found.customer, found.vip, found.total.cents) == (7, "Ann", False, 150)


def test_schemas_refer_to_others_both_ways(registry: str, client: SchemaRegistryClient, topic: str) -> None:
    address = record(field("zip", "string"), name="Address")
    client.register_schema(f"{topic}-address", Schema(json.dumps(address), "AVRO"))
    person = record(field("home", "shop.Address"), field("work", ["null", "shop.Address"]), name="Person")
    value = {"home": {"zip": "12345"}, "work": None}
    settings, context = Registry(url=registry), SerializationContext(topic, MessageField.VALUE, [])
    theirs = Schema(json.dumps(person), "AVRO", [SchemaReference("shop.Address", f"{topic}-address", 1)])
    conf = {"subject.name.strategy": topic_subject_name_strategy}
    data = AvroSerializer(client, theirs, conf=conf)(value, context)
    assert data is not None
    assert codec_of(Avro(), registry=settings, field="value").decode(data, None) == value
    penstocks = Avro(person, references=(Reference("shop.Address", f"{topic}-address", 1),))
    writing = codec_of(penstocks, registry=settings, field="value", topic=topic)
    assert writing.encode(value)[0] == data, "the same schema, found without being registered again"


def test_a_schema_is_registered_only_on_request_and_is_found_once_it_is_registered(
    registry: str, client: SchemaRegistryClient, topic: str
) -> None:
    codec = codec_of(Avro(CUSTOMER), registry=Registry(url=registry), field="value", topic=topic)
    with pytest.raises(DependencyUnavailable, match=f"does not have the schema under the subject {topic}-value"):
        codec.get_ready()
    assert f"{topic}-value" not in client.get_subjects()
    client.register_schema(f"{topic}-value", Schema(json.dumps(CUSTOMER), "AVRO"))
    fresh = codec_of(Avro(CUSTOMER), registry=Registry(url=registry, timeout=6.0), field="value", topic=topic)
    fresh.get_ready()
    assert fresh.can_encode


@pytest.mark.parametrize("schema_id", [0, 999_999, 2**31 - 1, 2**31, 2**32 - 1])
def test_an_id_that_the_registry_does_not_have_fails_the_record(registry: str, schema_id: int) -> None:
    codec = codec_of(Avro(), registry=Registry(url=registry), field="value")
    with pytest.raises(Undecodable, match=f"the schema id {schema_id} is not in the registry"):
        codec.decode(b"\x00" + schema_id.to_bytes(4, "big") + b"x", None)
    with pytest.raises(Undecodable, match="is not in the registry"):
        codec.decode(b"x", [("__value_schema_id", b"\x01" + b"0123456789abcdef")])


def test_a_wrong_path_on_the_registry_s_server_is_not_taken_for_a_missing_schema(registry: str) -> None:
    wrong = registry.replace("/ccompat/v7", "/nothing/here")
    with pytest.raises(DependencyUnavailable, match="answered"):
        codec_of(Avro(), registry=Registry(url=wrong), field="value").decode(b"\x00\x00\x00\x00\x01x", None)
