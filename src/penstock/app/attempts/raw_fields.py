"""Reads what ``by`` names, or what a function returns, from records that are not decoded yet."""

from collections.abc import Callable
from typing import Any

from penstock.app.attempts.record_adapter import RecordAdapter
from penstock.core.records.record import Record
from penstock.core.records.record_ids import RecordId


def raw_reader(declared: RecordId | Callable[[Record], Any], adapter: RecordAdapter) -> Callable[[Any], Any]:
    """The function from an engine's record to its header, key, part of the key, or what the user's function returns.

    It returns None for a record without that header or key.
    """
    if not isinstance(declared, RecordId):
        to_record = adapter.to_record
        return lambda record: declared(to_record(record, 1))
    if declared.source == "header":
        headers_of, name = adapter.headers_of, declared.name

        def of_header(record: Any) -> bytes | None:
            found = None
            for each, value in headers_of(record) or ():
                if each == name:
                    found = value
            return found

        return of_header
    if declared.source == "value":  # pragma: no cover - options that read raw records refuse it
        raise ValueError(declared)
    if not declared.before:
        return adapter.key_of
    key_of, end = adapter.key_of, declared.before.encode()

    def of_key(record: Any) -> bytes | None:
        key = key_of(record)
        return None if key is None else key.partition(end)[0]

    return of_key
