"""A clock that only the test moves."""

from datetime import UTC, datetime, timedelta


class Clock:
    """Seconds since the bench was created, and the date and time that they amount to."""

    def __init__(self, start: datetime) -> None:
        self._start = start
        # Counted from zero: added to seconds since 1970, short waits would lose precision.
        self._elapsed = 0.0

    def elapsed(self) -> float:
        return self._elapsed

    def time(self) -> float:
        """Seconds since 1970, like ``time.time``."""
        return self._start.timestamp() + self._elapsed

    def time_ms(self) -> int:
        return round(self.time() * 1000)

    def now(self) -> datetime:
        return (self._start + timedelta(seconds=round(self._elapsed, 6))).astimezone(UTC)

    def move_to(self, elapsed: float) -> None:
        """Move forward to this time. An earlier time has no effect."""
        self._elapsed = max(self._elapsed, elapsed)
