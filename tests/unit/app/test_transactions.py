"""Attempts in transactions: one transaction has the handler's writes and the finished offset."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from penstock import App, Record, Skip, by
from penstock.app import Handler, RecordAdapter, attempts, batch_attempts
from penstock.core.failures.outcome import DONE, Duplicate, Failed, Skipped
from penstock.engine.fetch.store_session import StoreSession
from penstock.errors import ConfigError
from penstock.stores import SqlOffsets

TP = ("orders", 0)
WRITE = sa.text("INSERT INTO sold VALUES (:id)")


class Shop:
    """A handler's table, and attempts at records with it."""

    def __init__(self, store: SqlOffsets, store_session: StoreSession) -> None:
        self.store, self.store_session = store, store_session
        begin = store_session.transactions(
            lambda record: (record.topic, record.partition), lambda record: record.offset
        )
        self.adapter = RecordAdapter(begin=begin)

    def rows(self) -> list[int]:
        with self.store.transaction("shop") as opened:
            return sorted(opened.tx.execute(sa.text("SELECT id FROM sold")).scalars())

    def finished(self) -> list[tuple[int, int]]:
        return list(self.store_session.claim([TP])[TP].finished)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    store = SqlOffsets(f"sqlite:///{tmp_path}/shop.db")
    store_session = StoreSession(store, "shop", store.close)
    store_session.claim([TP])
    with store.transaction("shop") as opened:
        opened.tx.execute(sa.text("CREATE TABLE sold (id INTEGER)"))
    yield Shop(store, store_session)
    store_session.close()


def declared(function: Any, **options: Any) -> Handler:
    app = App("shop")
    app.consume("orders", offsets="sqlite:///shop.db", **options)(function)
    return app.handlers[0]


def record(offset: int, value: int) -> Record:
    return Record(*TP, offset, None, b"%d" % value)


def sell(value: int, tx: sa.Connection) -> None:
    tx.execute(WRITE, {"id": value})
    if value == 13:
        raise OSError("no")
    if value == 7:
        raise Skip("seen")


def test_an_attempt_writes_and_finishes_or_does_neither(shop: Shop) -> None:
    attempt = attempts(declared(sell), shop.adapter)
    assert attempt(record(0, 10), 1) is DONE
    assert isinstance(attempt(record(1, 13), 1), Failed)
    assert isinstance(attempt(record(2, 7), 1), Skipped)
    assert attempt(record(3, 11), 1) is DONE
    assert (shop.rows(), shop.finished()) == ([10, 11], [(0, 1), (3, 4)])


def test_an_attempt_at_what_is_finished_is_done_and_writes_nothing(shop: Shop) -> None:
    attempt = attempts(declared(sell), shop.adapter)
    assert attempt(record(0, 10), 1) is DONE
    assert attempt(record(0, 10), 1) is DONE
    assert shop.rows() == [10]


def test_an_attempt_after_the_claim_is_lost_waits_and_is_not_counted(shop: Shop) -> None:
    attempt = attempts(declared(sell), shop.adapter)
    shop.store.claim("shop", [TP])
    outcome = attempt(record(0, 10), 1)
    assert isinstance(outcome, Failed)
    assert outcome.wait is not None
    shop.store_session.gone([TP])
    assert isinstance(attempt(record(0, 10), 1), Failed)
    assert shop.rows() == []


def test_of_a_batch_only_those_that_are_done_are_finished(shop: Shop) -> None:
    def sell_all(values: list[int], tx: sa.Connection) -> Any:
        wrong = [value == 13 for value in values]
        tx.execute(WRITE, [{"id": value} for value in values if value != 13])
        return [OSError("no") if each else None for each in wrong]

    attempt = batch_attempts(declared(sell_all, batch=4), shop.adapter)
    outcomes = attempt([record(0, 10), record(1, 13), record(2, 12)], [1, 1, 1])
    assert [each is DONE for each in outcomes] == [True, False, True]
    assert (shop.rows(), shop.finished()) == ([10, 12], [(0, 1), (2, 3)])


def test_a_batch_with_a_record_that_is_finished_already_is_taken_apart(shop: Shop) -> None:
    def sell_all(values: list[int], tx: sa.Connection) -> None:
        tx.execute(WRITE, [{"id": value} for value in values])

    attempt = batch_attempts(declared(sell_all, batch=4), shop.adapter)
    assert attempt([record(0, 10), record(1, 11)], [1, 1]) == [DONE, DONE]
    assert attempt([record(1, 11), record(2, 12)], [1, 1]) == [DONE, DONE]
    assert shop.rows() == [10, 11, 12]


def test_a_handler_with_tx_is_refused_by_an_engine_without_transactions() -> None:
    with pytest.raises(ConfigError, match="this engine opens no transactions"):
        attempts(declared(sell), RecordAdapter())


def test_the_id_of_a_record_is_remembered_in_its_transaction(shop: Shop) -> None:
    handler = declared(sell, dedupe=by.key(for_="1h"))
    now = [0.0]
    adapter = replace(shop.adapter, remember=shop.store_session.rememberer(), wall_clock=lambda: now[0])
    attempt = attempts(handler, adapter)

    def keyed(offset: int, value: int) -> Record:
        return Record(*TP, offset, b"k%d" % value, b"%d" % value)

    assert isinstance(attempt(keyed(0, 13), 1), Failed)
    assert isinstance(attempt(keyed(1, 13), 1), Failed), "a failed attempt has remembered nothing"
    assert attempt(keyed(2, 1), 1) is DONE
    assert isinstance(attempt(keyed(3, 1), 1), Duplicate)
    assert shop.rows() == [1]
    now[0] = 3_601.0
    assert attempt(keyed(4, 1), 1) is DONE
    assert shop.rows() == [1, 1]
