"""What changed from one set of rows to the next, field by field, so that an update is small."""

from dataclasses import dataclass, field
from typing import Any

from penstock.dashboard.feed.feed_source import Row, Rows


@dataclass(frozen=True)
class RowChanges:
    """The changed fields of rows by key, and the keys of rows that no longer exist."""

    fields: dict[str, Row] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.fields or self.gone)


def row_changes(before: Rows, after: Rows) -> RowChanges:
    """Return the changes. A field that a row no longer has becomes None; a new row has all its fields."""
    fields = {}
    for key, row in after.items():
        old = before.get(key)
        if old is None:
            fields[key] = row
        elif old is not row and (changed := _changed(old, row)):
            fields[key] = changed
    return RowChanges(fields, [key for key in before if key not in after])


def _changed(old: Row, new: Row) -> Row:
    missing = object()
    changed: dict[str, Any] = {name: value for name, value in new.items() if old.get(name, missing) != value}
    return changed | {name: None for name, value in old.items() if name not in new and value is not None}
