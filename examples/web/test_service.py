"""Tests of the handler without Kafka, and of the routes without a server."""

import asyncio

import pytest
import service
from fastapi import HTTPException
from service import Order, Receipt

from penstock.testing import Bench


def test_orders_of_a_customer_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "totals", {})
    bench = Bench(service.shop)
    for number, cents in enumerate((500, 250)):
        bench.produce("web-orders", Order(number, cents), key="anna")
    bench.run_until_idle()
    assert bench.outputs("web-receipts") == [Receipt(0, 500), Receipt(1, 250)]
    assert asyncio.run(service.customer("anna")) == {"cents": 750}
    bench.advance("2s")  # the next commit
    assert service.progress() == {"partitions": 1, "lag": 0}


def test_a_customer_without_orders_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "totals", {})
    with pytest.raises(HTTPException):
        asyncio.run(service.customer("ben"))
