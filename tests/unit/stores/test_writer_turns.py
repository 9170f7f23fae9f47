"""The queue of writers of a database that allows one writer at a time."""

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from kafka_helpers import wait_for
from penstock.stores import ClaimLost, SqlOffsets
from penstock.stores.sql_store import _TURNS
from penstock.stores.writer_turns import NoTurnError, Turns
from store_rules import TP

SECONDS = 120.0


class Line:
    """Threads that ask for turns one after the other."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._threads: list[threading.Thread] = []

    def ask(self, call: Callable[[], object]) -> None:
        self._threads.append(threading.Thread(target=call, daemon=True))
        self._threads[-1].start()
        wait_for(lambda: self._turns.waiting == len(self._threads), "a place in the line")

    def join(self) -> None:
        for thread in self._threads:
            thread.join(SECONDS)
            assert not thread.is_alive()


def test_the_urgent_come_first_and_all_others_in_the_order_of_asking() -> None:
    turns, served = Turns(), []
    line = Line(turns)

    def take(name: str, *, urgent: bool) -> None:
        with turns.turn(urgent=urgent, seconds=SECONDS):
            served.append(name)

    with turns.turn(urgent=False, seconds=SECONDS):
        for number in range(5):
            line.ask(partial(take, f"handler {number}", urgent=False))
        line.ask(partial(take, "save", urgent=True))
    line.join()
    assert served == ["save", *(f"handler {number}" for number in range(5))]


def test_a_writer_that_waits_too_long_leaves_the_queue() -> None:
    turns = Turns()
    with turns.turn(urgent=False, seconds=SECONDS):
        with pytest.raises(NoTurnError), turns.turn(urgent=True, seconds=0.001):
            pass
        assert not turns.waiting
    with turns.turn(urgent=False, seconds=SECONDS):
        pass


def test_a_claim_in_sqlite_waits_for_one_transaction_of_a_handler_however_many_wait(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shop.db"
    handlers, fetcher = SqlOffsets(url), SqlOffsets(url)  # several members of a process have a store each
    token = handlers.claim("shop", [TP])[TP].token
    line, lost, claimed = Line(_TURNS[url]), [], []

    def handle(offset: int) -> None:
        try:
            with handlers.transaction("shop") as opened:
                opened.finish(TP, token, [offset])
        except ClaimLost:
            lost.append(offset)

    with handlers.transaction("shop") as opened:
        for offset in range(5):
            line.ask(partial(handle, offset))
        line.ask(lambda: claimed.append(fetcher.claim("shop", [TP])[TP]))
        opened.finish(TP, token, [8])
    line.join()
    assert [kept.finished for kept in claimed] == [[(8, 9)]], "the claim came before all that waited"
    assert sorted(lost) == list(range(5))
    handlers.close()
    fetcher.close()
