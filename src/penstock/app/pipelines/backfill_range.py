"""The range of a backfill: from one position in the logs to another, without the end."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.app.options.consume_options import Start, check_start
from penstock.core.records.record import TopicPartition
from penstock.errors import ConfigError

_OFFSET = re.compile(r"([^:=,\s]+):(\d+)=(\d+)")
_FORMS = "Write a time (2026-01-31, or 2026-01-31T12:00:00+02:00; UTC by default), earliest, latest, or orders:0=100."


@dataclass(frozen=True)
class Span:
    """A time selects by the timestamps of records. Offsets select partitions too: only these partitions are read."""

    start: Start = "earliest"
    end: Start = "latest"

    def __post_init__(self) -> None:
        for option, value in (("--from", self.start), ("--to", self.end)):
            check_start(option, value, lambda problem, hint: ConfigError(problem, hint=hint))

    def includes(self, tp: TopicPartition) -> bool:
        """Whether the backfill reads this partition."""
        return all(not isinstance(each, Mapping) or tp in each for each in (self.start, self.end))


def read_log_position(text: str, *, name: str) -> Start:
    """A position in the log, as the command line has it. Commas separate several offsets."""
    text = text.strip()
    if text == "earliest":
        return "earliest"
    if text == "latest":
        return "latest"
    found = [_OFFSET.fullmatch(part.strip()) for part in text.split(",")]
    offsets = {(each[1], int(each[2])): int(each[3]) for each in found if each is not None}
    if len(offsets) == len(found):
        return offsets
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{name} {text!r} is not a position in a log.", hint=_FORMS) from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
