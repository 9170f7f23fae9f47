"""How many records the dispatcher hands to a worker at once.

A handover costs the same for one record as for many. So a quick handler gets bundles that take about 4 ms, and a slow
handler gets records one by one: in a bundle they would wait behind each other while other workers are idle.
"""

_BUNDLE_SECONDS = 0.004
# The largest bundle, and the largest run of one lane: a lane with a long queue must share workers with the others.
_MAX_RECORDS = 2_000
_NEWEST_WEIGHT = 0.3  # of the newest observation in the moving average

# A bundle of QUICK records or more means that the handler is so quick that sorting its records by key takes as long as
# handling them. Below NOT_QUICK records it is not. In between, the lanes stay as they are (hysteresis).
QUICK = 1_000
NOT_QUICK = 500


class BundleSize:
    """Measures how long one record takes. Before the first measurement, records go one by one."""

    def __init__(self) -> None:
        self._seconds_per_record: float | None = None

    def observe(self, records: int, seconds: float) -> None:
        if records:
            latest = seconds / records
            before = latest if self._seconds_per_record is None else self._seconds_per_record
            self._seconds_per_record = before + _NEWEST_WEIGHT * (latest - before)

    @property
    def size(self) -> int:
        if self._seconds_per_record is None:
            return 1
        if self._seconds_per_record * _MAX_RECORDS <= _BUNDLE_SECONDS:
            return _MAX_RECORDS
        return max(1, int(_BUNDLE_SECONDS / self._seconds_per_record))

    @property
    def bundle_seconds(self) -> float:
        """How long a worker needs for a bundle; 0 before the first measurement."""
        return self.size * (self._seconds_per_record or 0.0)


def queued_ahead(concurrency: int) -> int:
    """How many bundles may be queued for busy workers, so that a worker that finishes does not wait for the next."""
    return max(2, concurrency // 4)
