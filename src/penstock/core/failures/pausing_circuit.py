"""A breaker that pauses: nothing is dead-lettered while what the handler calls is down."""

from collections.abc import Hashable
from math import inf

from penstock.core.failures.breaker import Breaker, Circuit
from penstock.core.text.durations import seconds

# A record that would become a dead letter is tried once more after this time, to see whether others succeed meanwhile.
_DOUBT_SECONDS = 1.0
# A record that has opened the circuit so often, while each time another one has closed it, is the reason itself.
_MOST_OPENINGS = 3
# So many records are remembered that have opened it.
_MOST_OPENERS = 1_000


class PausingCircuit(Circuit):
    """The state of a breaker with ``then="pause"``.

    Before a record becomes a dead letter, it is tried once more, a second later. If a record that began in between has
    succeeded, the record itself is the reason, and it becomes a dead letter. If none has, the circuit opens. While it
    is open, no record becomes a dead letter, and one record is tried every ``probe``. A success closes it. Where few
    records arrive, none may succeed in that second: so a record opens the circuit at most a few times.

    A success counts by when it began: a record that began before an outage may succeed after others have failed.
    """

    def __init__(self, breaker: Breaker) -> None:
        super().__init__(breaker)
        self.pauses = True
        self.probe_seconds = seconds(breaker.probe, name="Breaker.probe")
        self.probe_at = inf
        """When the next record may be tried, while it is open."""
        self.opened_at = -inf
        self.reason = ""
        """The failure that has opened it."""
        self._worked_at = -inf  # when the last attempt began that has succeeded
        self._closed_at = -inf
        self._suspect: Hashable | None = None  # the last record that would have become a dead letter
        self._several = False  # more than one record would have, since the last success
        self._openings: dict[Hashable, int] = {}  # how often each record has opened it

    def worked(self, began: float, now: float) -> None:
        """An attempt that began at this time has succeeded."""
        if began <= self._worked_at:
            return
        self._worked_at = began
        if self.is_open and began > self.opened_at:
            self.is_open = False
            self.probe_at, self._closed_at = inf, now
            self.clear()
        if not self.is_open:
            self._suspect, self._several = None, False

    def withholds(self, record: Hashable, suspected_at: float | None, now: float, *, reason: str) -> float | None:
        """How long to wait before this record is tried again; None if it becomes a dead letter, and is counted as one.

        ``suspected_at`` is when it would have become a dead letter before; None the first time.
        """
        if self.is_open:
            return 0.0
        self._several |= self._suspect not in {None, record}
        self._suspect = record
        if self.is_share_reached:
            return self._open(record, now, reason)
        if suspected_at is None or suspected_at <= self._closed_at:
            return _DOUBT_SECONDS
        # If every exception counts, one record that always fails must not hold up all others.
        is_alone = not (self.breaker.on or self._several)
        if self._worked_at > suspected_at or is_alone or self._openings.get(record, 0) >= _MOST_OPENINGS:
            self._openings.pop(record, None)
            self._add(1, dead=True)
            return None
        return self._open(record, now, reason)

    def suspected_at(self, before: float, now: float) -> float:
        """When a record was suspected, as it counts for an attempt that begins now.

        The attempt may have waited for longer than the doubt, for example for its rate. Others may have succeeded
        meanwhile, before what the handler calls went down again.
        """
        return before if before <= self._closed_at else max(before, now - _DOUBT_SECONDS)

    def _open(self, record: Hashable, now: float, reason: str) -> float:
        if len(self._openings) >= _MOST_OPENERS:
            self._openings.clear()
        self._openings[record] = self._openings.get(record, 0) + 1
        self.is_open = True
        self.opened_at, self.probe_at, self.reason = now, now + self.probe_seconds, reason
        return 0.0

    def takes_probe(self, now: float) -> bool:
        """Whether a record may be tried now, while it is open."""
        return now >= self.probe_at

    def probing(self, now: float) -> None:
        """A record is tried."""
        self.probe_at = now + self.probe_seconds

    def learned_nothing(self, now: float) -> None:
        """The record that was tried has neither succeeded nor failed in a way that counts: another one may be tried."""
        if self.is_open:
            self.probe_at = now


def circuit_of(breaker: Breaker | None) -> Circuit | None:
    if breaker is None:
        return None
    return PausingCircuit(breaker) if breaker.then == "pause" else Circuit(breaker)
