"""Formats on the bench.

A registry in memory (``mock://``), outputs as they were returned, and an unavailable registry.
"""

from dataclasses import dataclass
from typing import Any

import pytest

from penstock import NO_RETRY, App, Avro, Registry
from penstock.codecs import codec_of, decoder_of
from penstock.core.reports import events
from penstock.testing import Bench

SCHEMA = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}


@dataclass
class Order:
    id: int


@pytest.mark.parametrize("schema_id", ["value", "headers"])
@pytest.mark.parametrize("is_async", [False, True])
def test_outputs_are_shown_as_they_were_returned(schema_id: Any, *, is_async: bool) -> None:
    app = App("shop", registry="mock://bench")
    given = codec_of(Avro(SCHEMA, register=True), registry=Registry(url="mock://bench"), field="value", topic="orders")
    options: dict[str, Any] = {
        "value": Avro(),
        "to": "out",
        "to_value": Avro(SCHEMA, register=True, schema_id=schema_id),
    }

    def handle(order: Order) -> Order:
        return Order(order.id + 1)

    async def handle_async(order: Order) -> Order:
        return handle(order)

    app.consume("orders", **options)(handle_async if is_async else handle)
    bench = Bench(app)
    bench.produce("orders", given.encode({"id": 7})[0])
    bench.run_until_idle()
    assert bench.outputs("out") == [Order(8)]
    (record,) = bench.records("out")
    assert bool(record.headers) == (schema_id == "headers")
    assert decoder_of(Avro(), registry="mock://bench")(record) == {"id": 8}


def test_while_a_registry_is_unavailable_nothing_is_dead_lettered_and_nothing_is_committed() -> None:
    app = App("shop", registry="http://127.0.0.1:1")

    @app.consume("orders", value=Avro(), dead_letter="dlq", retry=NO_RETRY)
    def handle(order: dict[str, Any]) -> None: ...

    bench = Bench(app)
    bench.produce("orders", b"\x00\x00\x00\x00\x01x")
    bench.run_until_idle()
    bench.advance("1m")
    assert bench.dead_letters("dlq") == []
    assert bench.lag("orders") == 1
    reported = bench.events_of(events.AwaitingDependency)
    assert 1 < len(reported) < 120, "one event for all attempts of about a second"
    assert "the schema registry at http://127.0.0.1:1 cannot be asked" in reported[0].reason
