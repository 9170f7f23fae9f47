"""``Maintenance``: how often a table is compacted, and how long old files and snapshots are kept."""

from dataclasses import dataclass

from penstock.core.text.durations import Duration, seconds
from penstock.core.text.suggestions import suggests_options
from penstock.errors import ConfigError

_DAY = 86_400.0
# Delta refuses less. Iceberg has no limit, but a reader needs the files of its snapshot until it has finished.
_LEAST_KEPT = {"delta": 7 * _DAY, "iceberg": _DAY / 24}


@suggests_options
@dataclass(frozen=True)
class Maintenance:
    """After every so many micro-batches, small files are compacted and old ones deleted.

    Args:
        every: After how many micro-batches.
        keep: How long files that the table no longer needs are kept, for readers that began earlier and for time
            travel: at least ``"7d"`` for Delta and ``"1h"`` for Iceberg.
    """

    every: int = 100
    keep: Duration = "7d"

    def __post_init__(self) -> None:
        if isinstance(self.every, bool) or not isinstance(self.every, int) or self.every < 1:
            raise ConfigError(f"Maintenance(every={self.every!r}) is not a count.", hint="Use 1 or more.")
        seconds(self.keep, name="keep")

    @property
    def keep_seconds(self) -> float:
        return seconds(self.keep, name="keep")

    def is_due(self, batch: int) -> bool:
        """Whether it is due after the batch with this number; the first one is 0."""
        return (batch + 1) % self.every == 0

    def check(self, format_: str, table: str) -> None:
        """Refuse it for a table of this format, if that has no maintenance or keeps files for longer."""
        if format_ not in _LEAST_KEPT:
            raise ConfigError(
                f"Table {table} has maintenance=, but {format_} files have no log of which files a table consists of, "
                "so files cannot be replaced while others read them.",
                hint='Use format="delta" or "iceberg", or leave it out.',
            )
        if self.keep_seconds < _LEAST_KEPT[format_]:
            least = '"7d"' if format_ == "delta" else '"1h"'
            raise ConfigError(
                f"Maintenance(keep={self.keep!r}) is too short for {format_}: readers may still need these files.",
                hint=f"Keep them for at least {least}.",
            )
