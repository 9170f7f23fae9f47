"""Progress in SQLite, in the same transaction as the handler's writes."""

import pickle
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from penstock.errors import ConfigError, SetupError, StoreError
from penstock.stores import SqlOffsets
from store_rules import RULES, SQL_RULES, TP


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlOffsets]:
    store = SqlOffsets(f"sqlite:///{tmp_path}/shop.db")
    yield store
    store.close()


@pytest.mark.parametrize("rule", [*RULES, *SQL_RULES])
def test_sqlite_keeps_the_rules(rule: Callable[[SqlOffsets], None], store: SqlOffsets) -> None:
    rule(store)


def test_a_store_travels_without_its_connections(store: SqlOffsets) -> None:
    token = store.claim("shop", [TP])[TP].token
    copy = pickle.loads(pickle.dumps(store))
    assert copy.claim("shop", [TP])[TP].token == token + 1
    copy.close()


def test_an_error_about_a_url_does_not_show_its_password() -> None:
    with pytest.raises(ConfigError, match="Use PostgreSQL or SQLite"):
        SqlOffsets("oracle+oracledb://user:secret@host/db").claim("shop", [])
    with pytest.raises(SetupError, match="needs pg8000"):
        SqlOffsets("postgresql+pg8000://user:secret@host/db").claim("shop", [])
    with pytest.raises(StoreError, match="failed while") as caught:
        SqlOffsets("sqlite:////nowhere/at/all.db").claim("shop", [])
    assert "secret" not in str(caught.value)
    assert "secret" not in repr(SqlOffsets("postgresql://user:secret@host/db"))


def _trace(statements: list[str], connection: sqlite3.Connection, _record: object) -> None:
    connection.set_trace_callback(statements.append)


def test_a_file_that_another_process_writes_to_is_tried_again_every_millisecond(
    store: SqlOffsets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements: list[str] = []
    trace = partial(_trace, statements)
    event.listen(Engine, "connect", trace)
    store.claim("shop", [TP])
    event.remove(Engine, "connect", trace)
    waits: list[float] = []
    with closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        def sleep(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 3:
                other.execute("COMMIT")

        monkeypatch.setattr("penstock.stores.sql_store.time.sleep", sleep)
        statements.clear()
        assert store.claim("shop", [TP])[TP].token == 2
    before = statements[statements.index("BEGIN IMMEDIATE") - 1]
    assert before == "PRAGMA busy_timeout = 0", "SQLite itself does not wait"
    assert waits == [0.001] * 3, "SQLite itself would wait up to 100 ms between two attempts"
