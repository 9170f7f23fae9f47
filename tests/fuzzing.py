"""Random and damaged bytes for every decoder: each must give a value or a reason.

``python -m fuzzing --count 100000`` tries more of them than the unit tests, which try a few thousand.
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypedDict

from pydantic import BaseModel

from penstock import App, Avro, JsonSchema, Protobuf, Record
from penstock.app import attempts
from penstock.codecs import RECORDS, codec_of
from penstock.core.failures.outcome import Done, Failed, Outcome
from penstock.core.settings import Registry
from penstock.serde import Format
from protobuf_messages import Order as OrderMessage

REGISTRY = Registry(url="mock://fuzzing")

AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": ["null", "string"]},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {"name": "items", "type": {"type": "array", "items": {"type": "map", "values": "double"}}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "digest", "type": {"type": "fixed", "name": "Digest", "size": 4}},
    ],
}
READER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "double"}, {"name": "vip", "type": "boolean", "default": False}],
}
CHAIN = {"type": "record", "name": "Chain", "fields": [{"name": "next", "type": ["null", "Chain"]}]}
JSON = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "items": {"type": "array", "items": {"type": "string"}}},
    "required": ["id"],
}
SAMPLE = {
    "id": 7,
    "customer": "Ann",
    "state": "PAID",
    "items": [{"a": 1.5}, {}],
    "at": 1_700_000_000_000,
    "price": b"\x01\x00",
    "digest": b"abcd",
}


@dataclass
class Order:
    id: int
    items: list[str]


class Typed(TypedDict):
    id: int
    customer: str


class Model(BaseModel):
    id: int
    items: list[str] = []


def _avro_sample() -> bytes:
    # The writer takes a Decimal, but the sample contains its bytes.
    from decimal import Decimal  # noqa: PLC0415

    codec = codec_of(Avro(AVRO, schema_id=None), registry=None, field="value", topic="t")
    return codec.encode({**SAMPLE, "price": Decimal("2.56")})[0]


def _chain(depth: int) -> bytes:
    return b"\x02" * depth + b"\x00"


def _message() -> bytes:
    message = OrderMessage(id=7, customer="Ann", items=[{"sku": "x", "count": 2, "part": {"sku": "y"}}])
    return bytes(message.SerializeToString())


def _registered(format_: Format) -> bytes:
    """The bytes before each value of this format."""
    codec: Any = codec_of(format_, registry=REGISTRY, field="value", topic="fuzzing")
    codec.get_ready()
    return bytes(codec._written_id[0])


@dataclass
class Target:
    """A decoder, the first bytes of its values, and values that it can decode."""

    how: Any
    hint: Any
    prefix: bytes
    samples: list[bytes]


def _own(data: bytes) -> int:
    return data[0] // (data[1] - 7)


def targets() -> dict[str, Target]:
    json = [b'{"id":1,"items":["a","b"],"customer":"Ann"}', b"[1,2]", b"7", '"é"'.encode()]
    avro, message, chain = _avro_sample(), _message(), _chain(5)
    written = Avro(AVRO, register=True)
    linked = Avro(CHAIN, register=True, subject="topic-record")
    checked = JsonSchema({**JSON, "title": "Order"}, register=True, subject="record")
    sent = Protobuf(OrderMessage, register=True, subject="record")
    return {
        "str": Target(None, str, b"", json),
        "int": Target(None, int, b"", json),
        "dict": Target(None, dict, b"", json),
        "dataclass": Target(None, Order, b"", json),
        "TypedDict": Target(None, Typed, b"", json),
        "pydantic": Target(None, Model, b"", json),
        "own function": Target(_own, int, b"", [b"ab", b"cd"]),
        "Avro": Target(Avro(), dict, _registered(written), [avro]),
        "Avro, read as another": Target(Avro(READER), dict, _registered(written), [avro]),
        "Avro into a dataclass": Target(Avro(), Order, _registered(written), [avro]),
        "Avro that refers to itself": Target(Avro(), dict, _registered(linked), [chain, _chain(1100)]),
        "bare Avro": Target(Avro(AVRO, schema_id=None), dict, b"", [avro]),
        "JSON Schema": Target(JsonSchema(), dict, _registered(checked), json),
        "bare JSON Schema": Target(JsonSchema(JSON, schema_id=None), dict, b"", json),
        "Protobuf": Target(Protobuf(OrderMessage), None, _registered(sent)[:5], [b"\x02\x02" + message]),
        "bare Protobuf": Target(Protobuf(OrderMessage, schema_id=None), None, b"", [message]),
    }


def attempt_of(target: Target) -> Callable[[bytes], Outcome]:
    app = App("fuzzing", registry=REGISTRY)

    def handle(value: Any) -> None: ...

    if target.hint is not None:
        handle.__annotations__["value"] = target.hint
    app.consume("fuzzing", value=target.how)(handle)
    attempt = attempts(app.handlers[0], RECORDS)
    return lambda data: attempt(Record("fuzzing", 0, 0, None, data), 1)


def inputs(target: Target, count: int, chance: random.Random) -> Iterator[bytes]:
    """Every tenth input is random. The others are damaged samples, most of them damaged after their prefix."""
    for _ in range(count):
        kind = chance.random()
        if kind < 0.1:
            yield chance.randbytes(chance.randrange(64))
        elif kind < 0.2:
            yield damaged(target.prefix + chance.choice(target.samples), chance)
        else:
            yield target.prefix + damaged(chance.choice(target.samples), chance)


def damaged(data: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.randrange(1, 4)):
        at, other = chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)
        low, high = min(at, other), max(at, other)
        data = chance.choice(
            [
                data[:at],
                data[at:],
                data[:low] + data[high:],
                data[:at] + chance.randbytes(chance.randrange(1, 5)) + data[at:],
                data[:at] + data[low:high] * chance.randrange(1, 20) + data[at:],
                data[:at]
                + chance.choice([b"\xff" * 9, b"\x80" * 9 + b"\x01", b"\x00", b"\x7f", b"[" * 2000])
                + data[at:],
                bytes(each ^ (1 << chance.randrange(8)) if index == at else each for index, each in enumerate(data)),
            ]
        )
    return data


def check(target: Target, count: int, seed: int) -> Counter[str]:
    """Count the outcomes of this many inputs; raise if one is neither a value nor a reason."""
    attempt, chance = attempt_of(target), random.Random(seed)
    found: Counter[str] = Counter()
    for data in inputs(target, count, chance):
        outcome = attempt(data)
        if isinstance(outcome, Failed):
            assert (outcome.error_type, outcome.final, outcome.wait) == ("Undecodable", True, None), (data, outcome)
            assert outcome.message.strip(), data
        assert isinstance(outcome, Done | Failed), (data, outcome)
        found[type(outcome).__name__] += 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("decoders", nargs="*", help="all by default")
    chosen = parser.parse_args()
    for name, target in targets().items():
        if chosen.decoders and name not in chosen.decoders:
            continue
        began = time.monotonic()
        found = check(target, chosen.count, chosen.seed)
        seconds = time.monotonic() - began
        sys.stdout.write(f"{name:28} {found['Done']:>7,} decoded {found['Failed']:>8,} refused {seconds:6.1f} s\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
