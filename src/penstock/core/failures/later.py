"""``Later``: a handler raises it to get the record again after a time. The wait is no failure and no attempt."""

from datetime import datetime

from penstock.core.text.durations import Duration, seconds
from penstock.errors import ConfigError, HandlerBug

# Without a least wait, a handler that always names a time in the past would run in an endless loop.
LEAST_SECONDS = 0.1


class Later(Exception):  # noqa: N818 - an outcome that a handler chooses, not an error
    """Raise it in a handler: Penstock calls the handler with this record again after a time.

    The wait is no failure: it counts as no attempt and never leads to a dead letter. A batch handler that raises it
    gets all records of the batch again.

    Args:
        wait: How long to wait, such as ``"10m"``.
        at: The time of the next call instead, with a time zone.
        reason: For the event ``delayed``.
    """

    def __init__(self, wait: Duration | None = None, *, at: datetime | None = None, reason: str = "") -> None:
        super().__init__(reason or (f"again in {wait}" if at is None else f"again at {at}"))
        if (wait is None) == (at is None):
            raise HandlerBug('Later takes a duration or at=, and not both: Later("10m"), Later(at=some_datetime)')
        self._seconds: float | None = None
        self._at: float | None = None
        if at is None and wait is not None:
            try:
                self._seconds = seconds(wait, name="Later")
            except ConfigError as error:
                raise HandlerBug(str(error)) from None
        elif at is not None:
            if not isinstance(at, datetime) or at.tzinfo is None:
                raise HandlerBug(f"Later(at={at!r}) needs a datetime with a time zone: datetime.now(UTC) has one")
            self._at = at.timestamp()

    def seconds_from(self, now: float) -> float:
        """How long to wait; ``now`` is in seconds since 1970."""
        wait = self._seconds if self._at is None else self._at - now
        return max(LEAST_SECONDS, wait or 0.0)
