"""Tests of the function, on a database in memory. The tests on Kafka and PostgreSQL are in tests/integration."""

import pytest
from ledger import Transfer, book
from sqlalchemy import create_engine, text

from penstock import Reject


def test_a_transfer_has_two_entries_that_add_up_to_zero() -> None:
    engine = create_engine("sqlite://")
    with engine.begin() as tx:
        book(Transfer(1, "anna", "ben", 500), tx)
        entries = [tuple(row) for row in tx.execute(text("SELECT account, cents FROM entries ORDER BY account"))]
    engine.dispose()
    assert entries == [("anna", -500), ("ben", 500)]


def test_a_transfer_of_nothing_is_rejected_before_anything_is_written() -> None:
    engine = create_engine("sqlite://")
    with engine.begin() as tx, pytest.raises(Reject):
        book(Transfer(1, "anna", "ben", 0), tx)
    engine.dispose()
