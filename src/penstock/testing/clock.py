"""The clock that is moved by hand."""

from datetime import UTC, datetime, timedelta


class Clock:
    """Seconds since the bench was made, and the time of day that they amount to."""

    def __init__(self, start: datetime) -> None:
        self._start = start
        # From zero on, so that adding up short waits stays as exact as they are.
        self._elapsed = 0.0

    def elapsed(self) -> float:
        return self._elapsed

    def time(self) -> float:
        """In seconds since 1970, as ``time.time``."""
        return self._start.timestamp() + self._elapsed

    def time_ms(self) -> int:
        return round(self.time() * 1000)

    def now(self) -> datetime:
        return (self._start + timedelta(seconds=round(self._elapsed, 6))).astimezone(UTC)

    def move_to(self, elapsed: float) -> None:
        """Never back: who is late stays where it is."""
        self._elapsed = max(self._elapsed, elapsed)
