"""What else can be a handler: partial functions, and objects that can be called."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from functools import partial

from penstock import App, Record
from penstock.app import attempts, attempts_async
from penstock.core.failures.outcome import Done, Outcome, ProducerRecord


@dataclass
class Order:
    id: int


def test_a_partial_function_is_a_handler_under_the_name_of_the_function() -> None:
    def tax(rate: int, order: Order) -> int:
        return order.id * rate

    async def ship(order: Order, record: Record, *, carrier: str) -> str:
        return f"{order.id} by {carrier}"

    app = App("shop")
    app.consume("orders", to="taxes")(partial(tax, 2))
    app.consume("orders", to="shipments", group="b")(partial(partial(ship, carrier="rail")))
    taxed, shipped = app.handlers
    assert (taxed.name, shipped.name) == ("tax", "ship")
    assert (taxed.signature.is_async, shipped.signature.is_async) == (False, True)
    record = Record("orders", 0, 0, None, b'{"id": 21}')
    assert attempts(taxed)(record, 1) == Done((ProducerRecord("taxes", None, b"42"),))
    shipment = ProducerRecord("shipments", None, b"21 by rail")
    assert asyncio.run(_outcome(attempts_async(shipped)(record, 1))) == Done((shipment,))


def test_an_object_that_can_be_called_is_a_handler_under_the_name_of_its_class() -> None:
    class Ship:
        async def __call__(self, order: Order) -> int:
            return order.id

    app = App("shop")
    app.consume("orders", to="out")(Ship())
    (handler,) = app.handlers
    assert handler.name == "Ship"
    record = Record("orders", 0, 0, None, b'{"id": 21}')
    assert asyncio.run(_outcome(attempts_async(handler)(record, 1))) == Done((ProducerRecord("out", None, b"21"),))


async def _outcome(awaited: Awaitable[Outcome]) -> Outcome:
    return await awaited
