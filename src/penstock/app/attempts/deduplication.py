"""Duplicates, with ``dedupe=``: a record whose id was handled before is finished without a call of the handler.

An id is stored with the origin of its record. So a record that is read again after a crash is no duplicate of itself.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from penstock.app.attempts.raw_fields import raw_reader
from penstock.app.attempts.record_adapter import Read, RecordAdapter, reader_by
from penstock.app.handler import Handler
from penstock.core.failures.outcome import Delayed, DependencyUnavailable, Duplicate, Outcome, Unfinished, failed
from penstock.core.records.record_ids import digest

# How long a record waits while another one with its id is in progress.
_BUSY_SECONDS = 0.2
_UNAVAILABLE_SECONDS = 1.0


class IdInProgress(Exception):  # noqa: N818 - a reason to wait
    """Another record with this id is in progress in this process."""


class SeenIds(Protocol):
    """The ids that a handler has seen. Threads call it at the same time."""

    def begin(self, record_id: str, origin: str, now: float) -> str | None:
        """Reserve an id for the record at ``origin``: None, or the origin of the record that was handled with it.

        Raises IdInProgress if another record has reserved it, and OSError if the ids cannot be read.
        """

    def end(self, record_id: str, origin: str, until: float | None) -> None:
        """Remember the id until then; None: the record was not finished, so forget it."""


class SeenBefore(Exception):  # noqa: N818 - the reason why a transaction is rolled back
    """The id of the record was handled before."""


def rememberer(handler: Handler, adapter: RecordAdapter) -> Callable[[Any, Any], None] | None:
    """For handlers with ``tx``: remembers the record's id in its transaction, or raises SeenBefore."""
    if adapter.remember is None or handler.dedupe is None:
        return None
    id_of, write, wall_clock = identifier(handler, adapter), adapter.remember, adapter.wall_clock
    window = handler.dedupe.seconds

    def remember(tx: Any, record: Any) -> None:
        record_id, now = id_of(record), wall_clock()
        if record_id is not None and not write(
            tx,
            handler=handler.name,
            record_id=record_id,
            origin=origin_text(adapter, record),
            now=now,
            until=now + window,
        ):
            raise SeenBefore

    return remember


def duplicate_of(origin: str) -> Duplicate:
    return Duplicate(f"its id was handled at {origin}")


SEEN_BEFORE = Duplicate("its id was handled before")


def identifier(handler: Handler, adapter: RecordAdapter) -> Callable[[Any], str | None]:
    """The function from a record to its id; None if it has none or cannot be decoded, so that the attempt says why."""
    declared = handler.dedupe
    if declared is None:
        return lambda _record: None
    if declared.source != "value":
        raw = raw_reader(declared, adapter)
        return lambda record: digest(raw(record))
    read: Read = reader_by(handler.value, handler.signature.hints["value"], adapter, registry=handler.registry)

    def of_value(record: Any) -> str | None:
        try:
            return digest(declared.of_value(read(record)))
        except Exception:  # noqa: BLE001 - the attempt decodes it again, and its error is the outcome
            return None

    return of_value


def origin_text(adapter: RecordAdapter, record: Any) -> str:
    return str(adapter.to_record(record, 1).origin)


def deduped(
    handler: Handler, adapter: RecordAdapter, attempt: Callable[[Any, int], Outcome]
) -> Callable[[Any, int], Outcome]:
    """The attempt, made only for ids that are new. The attempt itself without ``dedupe=``."""
    if adapter.ids_of is None or handler.dedupe is None:
        return attempt
    ids = _Ids(handler, adapter, adapter.ids_of(handler.name))

    def attempt_once(record: Any, number: int) -> Outcome:
        record_id, origin, early = ids.begin(record)
        if record_id is None or early is not None:
            return early or attempt(record, number)
        outcome: Outcome | None = None
        try:
            outcome = attempt(record, number)
        finally:
            ids.end(record_id, origin, outcome)
        return outcome

    return attempt_once


def deduped_async(
    handler: Handler, adapter: RecordAdapter, attempt: Callable[[Any, int], Awaitable[Outcome]]
) -> Callable[[Any, int], Awaitable[Outcome]]:
    if adapter.ids_of is None or handler.dedupe is None:
        return attempt
    ids = _Ids(handler, adapter, adapter.ids_of(handler.name))

    async def attempt_once(record: Any, number: int) -> Outcome:
        record_id, origin, early = ids.begin(record)
        if record_id is None or early is not None:
            return early or await attempt(record, number)
        outcome: Outcome | None = None
        try:
            outcome = await attempt(record, number)
        finally:
            ids.end(record_id, origin, outcome)
        return outcome

    return attempt_once


class _Ids:
    """The steps that ``def`` and ``async def`` handlers share."""

    def __init__(self, handler: Handler, adapter: RecordAdapter, seen: SeenIds) -> None:
        self._adapter, self._seen, self._retry = adapter, seen, handler.retry
        self._id_of = identifier(handler, adapter)
        self._window = 0.0 if handler.dedupe is None else handler.dedupe.seconds

    def begin(self, record: Any) -> tuple[str | None, str, Outcome | None]:
        """The record's id and origin, and an outcome if the handler must not be called."""
        record_id = self._id_of(record)
        if record_id is None:
            return None, "", None
        now, origin = self._adapter.wall_clock(), origin_text(self._adapter, record)
        try:
            handled = self._seen.begin(record_id, origin, now)
        except IdInProgress:
            return record_id, origin, Delayed(_BUSY_SECONDS, now + _BUSY_SECONDS, "a record with its id is in progress")
        except OSError as error:
            unavailable = DependencyUnavailable(f"the seen ids cannot be read: {error}", _UNAVAILABLE_SECONDS)
            return record_id, origin, failed(unavailable, self._retry)
        return record_id, origin, None if handled is None else duplicate_of(handled)

    def end(self, record_id: str, origin: str, outcome: Outcome | None) -> None:
        is_finished = outcome is not None and not isinstance(outcome, Unfinished)
        self._seen.end(record_id, origin, self._adapter.wall_clock() + self._window if is_finished else None)
