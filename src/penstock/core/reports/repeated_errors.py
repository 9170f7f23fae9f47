"""Decides which of many equal errors are reported."""

_REPEAT_SECONDS = 10.0
_MAX_REMEMBERED = 100


class RepeatedErrors:
    """Lets an error pass the first time, and then once in ten seconds while it repeats.

    While brokers are down, the Kafka client reports each attempt to connect, some twenty a second. Without a limit they
    would hide everything else in the terminal, in the log and in the events file.
    """

    def __init__(self) -> None:
        self._reported: dict[str, float] = {}  # the time of the last report, by the text of the error

    def is_due(self, error: str, now: float) -> bool:
        """Return whether to report the error now. If so, it counts as reported."""
        last = self._reported.get(error)
        if last is not None and now - last < _REPEAT_SECONDS:
            return False
        if len(self._reported) >= _MAX_REMEMBERED:
            self._reported.clear()
        self._reported[error] = now
        return True
