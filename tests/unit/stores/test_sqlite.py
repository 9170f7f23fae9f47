"""Progress in SQLite, and in the same transaction as what handlers write."""

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

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


def test_what_is_wrong_with_a_url_is_said_without_its_password() -> None:
    with pytest.raises(ConfigError, match="Use PostgreSQL or SQLite"):
        SqlOffsets("oracle+oracledb://user:secret@host/db").claim("shop", [])
    with pytest.raises(SetupError, match="needs pg8000"):
        SqlOffsets("postgresql+pg8000://user:secret@host/db").claim("shop", [])
    with pytest.raises(StoreError, match="failed while") as caught:
        SqlOffsets("sqlite:////nowhere/at/all.db").claim("shop", [])
    assert "secret" not in str(caught.value)
    assert "secret" not in repr(SqlOffsets("postgresql://user:secret@host/db"))
