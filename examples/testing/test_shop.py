"""Tests of the handler, without Kafka and without waiting."""

import pytest
import shop
from shop import Order, Receipt

from penstock.testing import Bench


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(shop, "charge", lambda order: f"charge-{order.id}")
    return Bench(shop.app, partitions=3)


def test_an_order_is_charged(bench: Bench) -> None:
    bench.produce("orders", {"id": 1, "cents": 500}, key="anna")
    bench.run_until_idle()
    assert bench.outputs("receipts") == [Receipt(1, "charge-1")]
    assert bench.records("receipts")[0].key == b"anna"


def test_an_order_without_a_price_becomes_a_dead_letter_with_the_reason(bench: Bench) -> None:
    bench.produce("orders", Order(1, 0))
    bench.produce("orders", "not an order")
    bench.run_until_idle()
    rejected, undecodable = bench.dead_letters("orders.dlq")
    assert rejected.reason == "Reject: nothing to charge"
    assert undecodable.value == b"not an order"


def test_only_the_customer_whose_charge_failed_waits_for_the_retry(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def fail_twice(order: Order) -> str:
        calls.append(order.id)
        if calls.count(1) <= 2 and order.id == 1:
            raise ConnectionError("the payment service is down")
        return f"charge-{order.id}"

    monkeypatch.setattr(shop, "charge", fail_twice)
    bench.produce("orders", Order(1, 100), key="anna")
    bench.produce("orders", Order(2, 100), key="anna")
    bench.produce("orders", Order(3, 100), key="ben")
    bench.run_until_idle()
    assert calls == [1, 3]
    bench.advance("10s")  # the second attempt
    assert calls == [1, 3, 1]
    bench.advance("20s")  # the third attempt, then the order behind it
    assert calls == [1, 3, 1, 1, 2]
    assert bench.dead_letters("orders.dlq") == []


def test_a_crash_after_the_charge_charges_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    charged = []

    def charge_and_crash(order: Order) -> str:
        charged.append(order.id)
        if len(charged) == 1:
            bench.crash()  # the process dies here, before the receipt is written
        return f"charge-{order.id}"

    monkeypatch.setattr(shop, "charge", charge_and_crash)
    bench.produce("orders", Order(1, 100))
    bench.run_until_idle()
    assert bench.outputs("receipts") == []
    bench.run_until_idle()  # a new process
    assert bench.outputs("receipts") == [Receipt(1, "charge-1")]
    assert charged == [1, 1], "the payment service must recognize an order that it has already charged"


def test_after_a_clean_stop_nothing_is_repeated(bench: Bench) -> None:
    for number in range(10):
        bench.produce("orders", Order(number, 100), key=str(number))
    bench.run_until_idle()
    bench.stop()
    assert bench.lag("orders") == 0
    bench.run_until_idle()
    assert len(bench.outputs("receipts")) == 10
