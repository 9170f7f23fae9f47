"""How many records to hand to a worker at once.

Handing over costs the same for one record as for many. So quick handlers get bundles worth a moment of work, and slow
ones get records one by one, or they would wait behind each other while other workers idle.
"""

_BUNDLE_SECONDS = 0.004
# Also of one lane, so that one with a long queue shares workers fairly.
_MOST = 2_000
_WEIGHT = 0.3  # of the newest observation

# Bundles of this size are of a handler so quick that to sort its records by key takes as long as to handle them, and
# ones below the other size are not: in between it is left as it was.
QUICK = 1_000
NOT_QUICK = 500


class BundleSize:
    """Learns how long a record takes. Until it knows, records go one by one."""

    def __init__(self) -> None:
        self._seconds_per_record: float | None = None

    def observe(self, records: int, seconds: float) -> None:
        if records:
            latest = seconds / records
            before = latest if self._seconds_per_record is None else self._seconds_per_record
            self._seconds_per_record = before + _WEIGHT * (latest - before)

    @property
    def size(self) -> int:
        if self._seconds_per_record is None:
            return 1
        if self._seconds_per_record * _MOST <= _BUNDLE_SECONDS:
            return _MOST
        return max(1, int(_BUNDLE_SECONDS / self._seconds_per_record))


def queued_ahead(concurrency: int) -> int:
    """How many works may wait for a worker, so that one that finishes need not wait for the dispatcher."""
    return max(2, concurrency // 4)
