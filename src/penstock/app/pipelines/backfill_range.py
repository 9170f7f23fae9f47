"""A stretch of topics for a backfill: from one place in their logs up to and without another."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.app.consume_options import Start, check_place_in_log
from penstock.core.records.record import TopicPartition
from penstock.errors import ConfigError

_OFFSET = re.compile(r"([^:=,\s]+):(\d+)=(\d+)")
_FORMS = "Write a moment (2026-01-31, or 2026-01-31T12:00:00+02:00; UTC by default), earliest, latest, or orders:0=100."


@dataclass(frozen=True)
class Span:
    """Moments are those of the records' own timestamps; offsets name the only partitions that are read."""

    start: Start = "earliest"
    end: Start = "latest"

    def __post_init__(self) -> None:
        for option, value in (("--from", self.start), ("--to", self.end)):
            check_place_in_log(option, value, lambda problem, hint: ConfigError(problem, hint=hint))

    def names(self, place: TopicPartition) -> bool:
        """Whether this partition is part of it."""
        return all(not isinstance(each, Mapping) or place in each for each in (self.start, self.end))


def read_place(text: str, *, name: str) -> Start:
    """A place in the log as it is written on the command line; several offsets have commas between them."""
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
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{name} {text!r} is not a place in a log.", hint=_FORMS) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
