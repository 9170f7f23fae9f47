"""What ``by`` and functions read from records that are not decoded."""

import pytest

from penstock import App, Record, by
from penstock.app.attempts.raw_fields import raw_reader
from penstock.app.attempts.record_adapter import RecordAdapter
from penstock.errors import ConfigError

RECORD = Record("t", 0, 0, b"acme:17", b"{}", (("tenant", b"old"), ("other", b"x"), ("tenant", b"new")))
PLAIN = Record("t", 0, 1, None, None)
ADAPTER = RecordAdapter()


@pytest.mark.parametrize(
    ("declared", "found", "without"),
    [
        (by.header("tenant"), b"new", None),
        (by.key(), b"acme:17", None),
        (by.key(before=":"), b"acme", None),
        (by.key(before="/"), b"acme:17", None),
        (lambda record: record.offset, 0, 1),
    ],
)
def test_a_field_of_a_raw_record(declared: object, found: object, without: object) -> None:
    read = raw_reader(declared, ADAPTER)  # type: ignore[arg-type]
    assert (read(RECORD), read(PLAIN)) == (found, without)


def test_dedupe_needs_to_know_how_long() -> None:
    with pytest.raises(ConfigError, match="does not say how long ids are remembered"):
        App("shop").consume("orders", dedupe=by.header("id"))(lambda value: None)


def test_a_prefix_needs_an_end() -> None:
    with pytest.raises(ConfigError, match="before='' is no text"):
        by.key(before="")
