"""The offset to which a reset moves a group on a partition: Kafka's scenarios, and what each repeats or skips."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from penstock.core.progress.offset_map import Range
from penstock.errors import ConfigError


class To(StrEnum):
    EARLIEST = "earliest"
    LATEST = "latest"
    CURRENT = "current"
    OFFSET = "offset"
    SHIFT = "shift"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Scenario:
    """``number`` is the offset, the shift, or the time in milliseconds since 1970."""

    to: To
    number: int = 0


@dataclass(frozen=True, slots=True)
class LogBounds:
    """The start and end offsets of a partition; ``at_time`` is the first offset at or after the time of a reset."""

    start: int
    end: int
    at_time: int | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """The new offset; ``note`` says why it differs from what the user asked for."""

    offset: int
    note: str = ""


def target(scenario: Scenario, log: LogBounds, committed: int | None, *, tp: str) -> Target:
    """The offset to which the reset sets a partition; ``tp`` is the partition's name for errors."""
    match scenario.to:
        case To.EARLIEST:
            return Target(log.start)
        case To.LATEST:
            return Target(log.end)
        case To.CURRENT:
            # A committed offset stays as it is, even outside the log. A partition without a commit gets its end.
            return Target(log.end, "had no commit") if committed is None else Target(committed)
        case To.TIME:
            return Target(log.end, "no record is that new") if log.at_time is None else Target(log.at_time)
        case To.OFFSET:
            return clamped(log, scenario.number)
        case To.SHIFT:
            if committed is None:
                raise ConfigError(
                    f"{tp} cannot be shifted because the group has no committed offset there.",
                    hint="Leave this partition out with --topic TOPIC:PARTITIONS, or use --to-offset.",
                )
            return clamped(log, committed + scenario.number)


def clamped(log: LogBounds, wanted: int) -> Target:
    """The wanted offset, or the start or end of the log if it lies outside of it."""
    if wanted > log.end:
        return Target(log.end, f"{wanted} is past the end")
    if wanted < log.start:
        return Target(log.start, f"{wanted} is before the start")
    return Target(wanted)


@dataclass(frozen=True, slots=True)
class Effect:
    """How many records the group will process again, and how many it will never process."""

    repeated: int
    skipped: int


def effect(old: int | None, new: int, log: LogBounds, finished: Sequence[Range] = ()) -> Effect:
    """What moving a group from offset ``old`` to ``new`` repeats and skips.

    ``finished`` are the ranges of the offset map. A reset clears the map, so records in these ranges above ``new`` are
    delivered again. It counts offsets, which are more than records if the log has gaps. Without an old offset it counts
    nothing, because we do not know where the group would have started.
    """
    if old is None:
        return Effect(0, 0)
    old = min(max(old, log.start), log.end)
    new = min(max(new, log.start), log.end)
    return Effect(
        repeated=max(0, old - new) + _count(finished, new, log.end),
        skipped=max(0, new - old) - _count(finished, old, new),
    )


def _count(ranges: Iterable[Range], start: int, end: int) -> int:
    """How many offsets of the ranges lie from ``start`` up to, not including, ``end``."""
    return sum(max(0, min(last, end) - max(first, start)) for first, last in ranges)
