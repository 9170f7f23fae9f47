"""Rules that every offset store must follow. The tests of each store call them."""

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from unittest.mock import patch

import pytest

from penstock.core.failures.outcome import DependencyUnavailable
from penstock.stores import AlreadyFinished, ClaimLost, OffsetStore, Progress, SavedProgress, SqlOffsets, sql_store

TP = ("orders", 3)
OTHER = ("orders", 4)


def keeps_what_is_saved_for_each_group_and_partition(store: OffsetStore) -> None:
    assert store.claim("shop", []) == {}
    first = store.claim("shop", [TP, OTHER])
    assert {(kept.offset, kept.metadata, tuple(kept.finished)) for kept in first.values()} == {(None, "", ())}
    assert not store.save("shop", {TP: Progress(first[TP].token, 42, "pk1:map")})
    again = store.claim("shop", [TP, OTHER])
    assert (again[TP].offset, again[TP].metadata, again[OTHER].offset) == (42, "pk1:map", None)
    assert store.claim("bank", [TP])[TP].offset is None


def refuses_saves_after_another_claim(store: OffsetStore) -> None:
    zombie, other = (store.claim("shop", [TP, OTHER])[tp].token for tp in (TP, OTHER))
    owner = store.claim("shop", [TP])[TP].token
    assert owner > zombie
    assert not store.save("shop", {TP: Progress(owner, 10, "")})
    other = store.claim("shop", [OTHER])[OTHER].token
    refused = store.save("shop", {TP: Progress(zombie, 5, ""), OTHER: Progress(other, 7, "")})
    assert list(refused) == [TP]
    store.forget("shop", {TP: zombie})
    kept = store.claim("shop", [TP, OTHER])
    assert (kept[TP].offset, kept[OTHER].offset) == (10, 7)


def forgets_the_progress_of_a_recreated_log(store: OffsetStore) -> None:
    token = store.claim("shop", [TP])[TP].token
    store.save("shop", {TP: Progress(token, 10, "note")})
    store.forget("shop", {TP: token})
    assert not store.save("shop", {TP: Progress(token, 2, "")}), "the claim is still valid"
    assert store.claim("shop", [TP])[TP].offset == 2


RULES = [
    keeps_what_is_saved_for_each_group_and_partition,
    refuses_saves_after_another_claim,
    forgets_the_progress_of_a_recreated_log,
]


def text(statement: str) -> Any:
    from sqlalchemy import text as made  # noqa: PLC0415 - an extra

    return made(statement)


def write(store: SqlOffsets, token: int, offset: int, value: int, *, tp: tuple[str, int] = TP) -> None:
    """Write a row as a handler does, and finish the offset as Penstock does."""
    with store.transaction("shop") as opened:
        opened.tx.execute(text("INSERT INTO sold VALUES (:value)"), {"value": value})
        opened.finish(tp, token, [offset])


def sold(store: SqlOffsets) -> list[int]:
    with store.transaction("shop") as opened:
        return sorted(opened.tx.execute(text("SELECT id FROM sold")).scalars())


def make_table(store: SqlOffsets) -> None:
    store.claim("shop", [])
    with store.transaction("shop") as opened:
        opened.tx.execute(text("CREATE TABLE sold (id INTEGER)"))


def ranges(kept: SavedProgress) -> Sequence[tuple[int, int]]:
    return list(kept.finished)


def writes_and_progress_are_one(store: SqlOffsets) -> None:
    make_table(store)
    token = store.claim("shop", [TP])[TP].token
    write(store, token, 5, 50)
    write(store, token, 7, 70)
    write(store, token, 6, 60)
    with suppress(ZeroDivisionError), store.transaction("shop") as opened:
        opened.tx.execute(text("INSERT INTO sold VALUES (80)"))
        opened.finish(TP, token, [8])
        raise ZeroDivisionError
    assert sold(store) == [50, 60, 70]
    assert ranges(store.claim("shop", [TP])[TP]) == [(5, 8)], "out of order, and neighbours together"


def nothing_is_finished_twice(store: SqlOffsets) -> None:
    make_table(store)
    token = store.claim("shop", [TP])[TP].token
    write(store, token, 5, 50)
    with pytest.raises(AlreadyFinished):
        write(store, token, 5, 51)
    # The inbox has no offsets below the commit point any more, and still the store refuses them.
    store.save("shop", {TP: Progress(token, 6, "")})
    with pytest.raises(AlreadyFinished):
        write(store, token, 5, 52)
    assert ranges(store.claim("shop", [TP])[TP]) == [], "trimmed"
    assert sold(store) == [50]


def a_zombie_writes_nothing(store: SqlOffsets) -> None:
    make_table(store)
    zombie = store.claim("shop", [TP])[TP].token
    owner = store.claim("shop", [TP])[TP].token
    with pytest.raises(ClaimLost):
        write(store, zombie, 5, 50)
    with pytest.raises(ClaimLost):
        write(store, 1, 5, 50, tp=OTHER)
    write(store, owner, 5, 55)
    assert sold(store) == [55]


def forgetting_empties_the_inbox(store: SqlOffsets) -> None:
    make_table(store)
    token = store.claim("shop", [TP])[TP].token
    write(store, token, 5, 50)
    store.forget("shop", {TP: token})
    write(store, token, 5, 51)
    assert sold(store) == [50, 51]


def many_write_at_once(store: SqlOffsets) -> None:
    make_table(store)
    token = store.claim("shop", [TP])[TP].token
    errors: list[BaseException] = []

    def work(first: int) -> None:
        try:
            for offset in range(first, 200, 8):
                write(store, token, offset, offset)
                if offset % 20 == 0:
                    store.save("shop", {TP: Progress(token, 0, "")})
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            errors.append(error)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert sold(store) == list(range(200))
    assert ranges(store.claim("shop", [TP])[TP]) == [(0, 200)]


def the_handlers_errors_are_its_own(store: SqlOffsets) -> None:
    make_table(store)
    with pytest.raises(Exception, match="nowhere") as caught, store.transaction("shop") as opened:
        opened.tx.execute(text("SELECT * FROM nowhere"))
    assert not isinstance(caught.value, DependencyUnavailable)
    assert sold(store) == []


def ids_are_remembered_with_the_writes_of_their_record_and_forgotten_after_their_time(store: SqlOffsets) -> None:
    token = store.claim("shop", [TP])[TP].token

    def remember(record_id: str, origin: str, *, now: float, until: float, handler: str = "sell") -> bool:
        with store.transaction("shop") as opened:
            return store.remember(
                opened.tx, group="shop", handler=handler, record_id=record_id, origin=origin, now=now, until=until
            )

    assert remember("a", "t[0]@1", now=0, until=60)
    assert remember("a", "t[0]@1", now=1, until=60), "a record is no duplicate of itself"
    assert not remember("a", "t[0]@2", now=59, until=119)
    assert remember("a", "t[0]@2", now=59, until=60, handler="other")
    assert remember("a", "t[0]@2", now=60, until=120), "its time is over"
    with suppress(KeyError), store.transaction("shop") as opened:
        store.remember(opened.tx, group="shop", handler="sell", record_id="b", origin="t[0]@3", now=0, until=60)
        raise KeyError
    assert remember("b", "t[0]@4", now=0, until=60), "its transaction was rolled back"
    with patch.object(sql_store, "_FORGET_EVERY", 2):
        store.save("shop", {TP: Progress(token, 0, "")})
    with store.transaction("shop") as opened:
        assert opened.tx.execute(text("SELECT count(*) FROM penstock_seen")).scalar() == 0


SQL_RULES = [
    ids_are_remembered_with_the_writes_of_their_record_and_forgotten_after_their_time,
    writes_and_progress_are_one,
    nothing_is_finished_twice,
    a_zombie_writes_nothing,
    forgetting_empties_the_inbox,
    many_write_at_once,
    the_handlers_errors_are_its_own,
]
