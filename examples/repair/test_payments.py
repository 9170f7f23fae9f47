"""Tests of the repair: the dead letters of the old version are what the new version must handle."""

import payments
import pytest
from payments import Booking, Payment

from penstock.testing import Bench


def run(*amounts: str) -> Bench:
    bench = Bench(payments.app)
    for number, amount in enumerate(amounts):
        bench.produce("payments", Payment(number, amount), key=str(number))
    bench.run_until_idle()
    return bench


def test_the_old_version_writes_dead_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payments, "KNOWS_COMMAS", False)
    bench = run("12.50", "12,50")
    assert bench.outputs("bookings") == [Booking(0, 1_250)]
    (letter,) = bench.dead_letters("payments.dlq")
    assert letter.reason == "Reject: '12,50' is not an amount"


@pytest.mark.parametrize(("text", "cents"), [("12,50", 1_250), ("12.5", 1_250), ("12", 1_200), ("0,05", 5)])
def test_the_new_version_books_them(text: str, cents: int) -> None:
    assert run(text).outputs("bookings") == [Booking(0, cents)]


def test_what_is_no_amount_stays_a_dead_letter() -> None:
    assert len(run("much").dead_letters("payments.dlq")) == 1
