"""Tests of the handlers, without Kafka and without waiting. Prices are the test's own."""

from datetime import UTC, datetime

import pytest
import store
from store import Order

from penstock.testing import Bench

TRACE = ("trace", b"abc")


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    bench = Bench(store.app, now=datetime(2026, 1, 1, tzinfo=UTC), prices={"pen": 2, "book": 10})
    monkeypatch.setattr(
        store, "wait_is_over", lambda record: bench.now.timestamp() * 1000 >= record.timestamp_ms + 2_000
    )
    return bench


def test_an_order_has_a_receipt_and_a_line_in_the_audit(bench: Bench) -> None:
    bench.produce("store-orders", Order(1, "pen", 3), key="anna", headers=[("type", b"created"), TRACE])
    bench.run_until_idle()
    (receipt,), (audit,) = bench.records("store-receipts"), bench.records("store-audit")
    assert (receipt.key, receipt.value) == (b"anna", b'{"order":1,"cents":6}')
    assert set(receipt.headers) == {("type", b"receipt"), TRACE}
    assert (audit.key, audit.value) == (b"1", b'{"created":1}')


def test_a_cancellation_goes_to_its_own_handler(bench: Bench) -> None:
    bench.produce("store-orders", Order(2, "pen"), headers=[("type", b"cancelled")])
    bench.run_until_idle()
    assert [record.value for record in bench.records("store-audit")] == [b'{"cancelled":2}']


def test_a_book_waits_and_delays_only_its_customer(bench: Bench) -> None:
    for number, item, key in ((1, "book", "anna"), (2, "pen", "anna"), (3, "pen", "ben")):
        bench.produce("store-orders", Order(number, item), key=key, headers=[("type", b"created")])
    bench.run_until_idle()
    assert [record.value for record in bench.records("store-audit")] == [b'{"created":3}']
    bench.advance("3s")
    assert [record.value for record in bench.records("store-audit")][1:] == [b'{"created":1}', b'{"created":2}']


def test_what_no_handler_takes_and_what_cannot_be_sold_are_dead_letters(bench: Bench) -> None:
    bench.produce("store-orders", Order(4, "car"), headers=[("type", b"created")])
    bench.produce("store-orders", Order(5, "pen"), headers=[("type", b"refunded")])
    bench.run_until_idle()
    rejected, unrouted = bench.dead_letters("store-orders.dlq")
    assert rejected.reason == "Reject: there is no 'car'"
    assert unrouted.reason.startswith("Unrouted: ")
