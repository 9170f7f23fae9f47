"""``Rate``: how many calls of a handler may begin in a time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from penstock.core.records.record import Record
from penstock.core.records.record_ids import By, RecordId
from penstock.core.text.durations import Duration, seconds
from penstock.core.text.suggestions import suggests_options
from penstock.errors import ConfigError

# By default, a tenth of the limit may begin at once: enough to make up for calls that began a little late.
_DEFAULT_BURST_PART = 10

TenantOf = RecordId | Callable[[Record], Any]
"""Which tenant a record belongs to."""


@suggests_options
@dataclass(frozen=True)
class Rate:
    """At most ``limit`` calls of the handler begin ``per`` this time; after a quiet time, ``burst`` of them at once.

    ``by`` gives each tenant a rate of its own: ``"key"``, ``by.header("tenant")``, ``by.key(before=":")``, or a
    function that takes a ``Record``. With ``shared=True`` the members of the group divide the rate by their partitions,
    so that the group as a whole keeps it.
    """

    limit: float
    per: Duration = "1s"
    burst: int | None = None
    by: Literal["key"] | TenantOf | None = None
    shared: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.limit, bool) or not isinstance(self.limit, int | float) or not 0 < self.limit < float("inf"):
            raise ConfigError(f"Rate.limit={self.limit!r} is not a number of calls.", hint="Use a number above 0.")
        if seconds(self.per, name="Rate.per") <= 0:
            raise ConfigError(f"Rate.per={self.per!r} is no time.", hint='Use a duration such as "1s" or "1h".')
        if self.burst is None:
            object.__setattr__(self, "burst", max(1, int(self.limit) // _DEFAULT_BURST_PART))
        elif isinstance(self.burst, bool) or not isinstance(self.burst, int) or self.burst < 1:
            raise ConfigError(f"Rate.burst={self.burst!r} is not a count.", hint="Use a whole number of at least 1.")
        if self.by == "key":
            object.__setattr__(self, "by", RecordId("key", "key"))
        self._check_by()
        if not isinstance(self.shared, bool):
            raise ConfigError(f"Rate.shared={self.shared!r} is not a bool.", hint="Use True or False.")
        if self.shared and self.is_by_whole_key:
            raise ConfigError(
                'Rate.by="key" needs no shared=True: a key is in one partition, so the group keeps its rate anyway.',
                hint="Leave shared= out.",
            )

    def _check_by(self) -> None:
        by = self.by
        if isinstance(by, RecordId):
            if by.source != "value":
                return
            raise ConfigError(
                f"Rate.by reads the field {by.name!r} of the value, but a rate is kept before values are decoded.",
                hint='Use by="key", by.header(...), or a function that takes the record.',
            )
        if by is None or (callable(by) and not isinstance(by, By)):
            return
        raise ConfigError(
            f"Rate.by={by!r} does not say which tenant a record belongs to.",
            hint='Use by="key", by.header("tenant"), by.key(before=":"), or a function that takes the record.',
        )

    @property
    def is_by_whole_key(self) -> bool:
        return isinstance(self.by, RecordId) and self.by.source == "key" and not self.by.before

    @property
    def interval(self) -> float:
        """Seconds from one call to the next."""
        return seconds(self.per, name="Rate.per") / self.limit

    def __str__(self) -> str:
        return f"{self.limit:g} per {self.per if isinstance(self.per, str) else f'{self.per:g}s'}"
