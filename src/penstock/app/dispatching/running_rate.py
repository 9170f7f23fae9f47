"""The rate of a handler while it runs, in a member of the local engine or of the testing kit."""

from collections.abc import Callable, Hashable
from typing import Any

from penstock.app.attempts.raw_fields import raw_reader
from penstock.app.attempts.record_adapter import RecordAdapter
from penstock.app.dispatching.reporter import Reporter
from penstock.app.handler import Handler
from penstock.core.scheduling.dispatch import Dispatch
from penstock.core.scheduling.rate import Rate
from penstock.core.scheduling.rate_limit import RateLimit
from penstock.core.text.foreign_text import printable_line

# The handler counts as limited until no record has waited for so long: often, none waits for a moment.
_QUIET_SECONDS = 5.0
_SHOWN_CHARACTERS = 80

PartitionsOf = Callable[[], int]
"""How many partitions the source topics have."""


class RunningRate:
    """The dispatcher's thread owns it; other threads read ``waiting``."""

    def __init__(
        self,
        handler: Handler,
        dispatch: Dispatch,
        reporter: Reporter,
        adapter: RecordAdapter,
        *,
        partitions: PartitionsOf,
        clock: Callable[[], float],
    ) -> None:
        self._handler = handler
        self._dispatch = dispatch
        self._reporter = reporter
        self._adapter = adapter
        self._partitions = partitions
        self._clock = clock
        self._limit: RateLimit | None = None
        self._share = 1.0
        self._limited_since: float | None = None
        self._waited_at = 0.0
        self.rate: Rate | None = None
        """The rate of this member, or, with ``shared``, that of the group."""
        self.set(handler.rate)

    @property
    def is_shared(self) -> bool:
        """Whether the members of the group divide the rate. Any thread may read it."""
        rate = self.rate
        return rate is not None and rate.shared

    @property
    def waiting(self) -> int:
        """How many records could begin if their rate let them. Those behind them in their lanes do not count."""
        return self._dispatch.waiting_for_rate

    def set(self, rate: Rate | None) -> None:
        """Keep this rate from now on; None ends it."""
        before, self.rate = self.rate, rate
        if rate is None:
            self._limit = None
            self._dispatch.set_rate(None)
        elif self._limit is not None and before is not None and before.by == rate.by:
            self._limit.change(*self._numbers(rate), self._clock())
        else:
            tenant_of = None if rate.by is None else _Tenants(self._handler, rate, self._adapter, self._reporter.warned)
            self._limit = RateLimit(*self._numbers(rate), tenant_of)
            self._dispatch.set_rate(self._limit)

    def look(self) -> None:
        """Follow the member's share of the partitions."""
        if self.rate is None or not self.rate.shared or self._limit is None:
            return
        owned = sum(1 for epoch in self._dispatch.epochs if epoch.tp[0] not in self._handler.delayed)
        share = min(1.0, owned / max(1, self._partitions()))
        if owned and share != self._share:
            self._share = share
            self._limit.change(*self._numbers(self.rate), self._clock())

    def report(self) -> None:
        """Emit an event if the handler has begun or ended to be limited since the last call."""
        rate, now, waiting = self.rate, self._clock(), self._dispatch.take_most_waiting_for_rate()
        if waiting and rate is not None:
            self._waited_at = now
            if self._limited_since is None:
                self._limited_since = now
                self._reporter.rate_limited(str(rate), waiting)
        elif self._limited_since is not None and (rate is None or now - self._waited_at >= _QUIET_SECONDS):
            self._reporter.rate_eased(self._waited_at - self._limited_since)
            self._limited_since = None

    def _numbers(self, rate: Rate) -> tuple[float, float]:
        share = self._share if rate.shared else 1.0
        return rate.interval / share, (rate.burst or 1) * share


class _Tenants:
    """Reads the tenant of a record. Records for which that fails belong to the tenant None, with a warning."""

    def __init__(self, handler: Handler, rate: Rate, adapter: RecordAdapter, warn: Callable[[str], None]) -> None:
        declared: Any = rate.by
        self._read = raw_reader(declared, adapter)
        self._handler = handler
        self._adapter = adapter
        self._warn = warn
        self._has_warned = False

    def __call__(self, record: Any) -> Hashable:
        try:
            found = self._read(record)
            # Text and bytes of the same letters are the same tenant. A list, for example, could not be remembered.
            return found if found is None or isinstance(found, bytes) else str(found).encode(errors="surrogatepass")
        except Exception as error:  # noqa: BLE001 - the user's function; the record must run in any case
            if not self._has_warned:
                self._has_warned = True
                shown = printable_line(f"{type(error).__name__}: {error}", limit=_SHOWN_CHARACTERS)
                self._warn(
                    f"Handler {self._handler.name}: Rate.by= failed with {shown} for "
                    f"{self._adapter.to_record(record, 1)}. Such records share the rate of those without a tenant."
                )
            return None
