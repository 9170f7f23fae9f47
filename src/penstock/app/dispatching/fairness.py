"""What ``fair_by=``, ``weights=`` and ``priority=`` say about the records of an engine."""

from collections.abc import Callable, Hashable
from typing import Any

from penstock.app.attempts.raw_fields import raw_reader
from penstock.app.attempts.record_adapter import RecordAdapter
from penstock.app.handler import Handler
from penstock.core.records.record import Record
from penstock.core.scheduling.fair_queue import HIGHEST, LOWEST, Fairness
from penstock.core.text.foreign_text import printable_line

Warn = Callable[[str], None]

NAMED = {b"low": -1, b"normal": 0, b"high": 1}
"""The names of priorities."""

_SHOWN_CHARACTERS = 40


def fairness_of(handler: Handler, adapter: RecordAdapter, warn: Warn) -> Fairness | None:
    """The turns that this handler declares; None if it declares none."""
    if handler.fair_by is None and handler.priority is None:
        return None
    parts: dict[str, Any] = {}
    if handler.fair_by is not None:
        parts["tenant_of"] = _Tenants(handler, adapter, warn)
        weights = {_text(tenant): float(weight) for tenant, weight in handler.weights.items()}
        parts["weight_of"] = lambda tenant: weights.get(tenant, 1.0)
    if handler.priority is not None:
        parts["priority_of"] = _Priorities(handler, adapter, warn)
    return Fairness(**parts)


class _Reader:
    """Reads one option of raw records, and warns about the first record for which that is impossible."""

    option = ""

    def __init__(self, handler: Handler, adapter: RecordAdapter, warn: Warn) -> None:
        self._handler = handler
        self._read = raw_reader(getattr(handler, self.option), adapter)
        self._to_record: Callable[[Any, int], Record] = adapter.to_record
        self._warn = warn
        self._has_warned = False

    def _note(self, record: Any, problem: str, then: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            where = self._to_record(record, 1)
            self._warn(f"Handler {self._handler.name}: {self.option}= {problem} for {where}. {then}")

    def _failed(self, record: Any, error: Exception, then: str) -> None:
        shown = printable_line(f"{type(error).__name__}: {error}", limit=2 * _SHOWN_CHARACTERS)
        self._note(record, f"failed with {shown}", then)


class _Tenants(_Reader):
    option = "fair_by"

    def __call__(self, record: Any) -> Hashable:
        try:
            return _text(self._read(record))
        except Exception as error:  # noqa: BLE001 - the user's function; the record must run in any case
            self._failed(record, error, "Such records share the turns of those without a tenant.")
            return None


class _Priorities(_Reader):
    option = "priority"

    def __call__(self, record: Any) -> int:
        try:
            found = self._read(record)
            if found is None:
                return 0
            if not isinstance(found, int):
                name = _text(found)
                found = NAMED[name] if name in NAMED else int(name or b"")
        except ValueError:
            shown = printable_line(repr(found), limit=_SHOWN_CHARACTERS)
            self._note(
                record, f"found {shown}", "Such records have the priority 0; use an integer, low, normal or high."
            )
            return 0
        except Exception as error:  # noqa: BLE001 - the user's function
            self._failed(record, error, "Such records have the priority 0.")
            return 0
        return max(LOWEST, min(HIGHEST, found))


def _text(found: Any) -> bytes | None:
    """A tenant as bytes: text and bytes of the same letters are the same tenant."""
    if found is None or isinstance(found, bytes):
        return found
    return str(found).encode(errors="surrogatepass")
