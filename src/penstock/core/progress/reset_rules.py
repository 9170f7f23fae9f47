"""Where a reset takes a partition of a group: Kafka's scenarios, and what each move repeats or skips."""

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
    """``number`` is the offset or the shift, or for a time the milliseconds since 1970."""

    to: To
    number: int = 0


@dataclass(frozen=True, slots=True)
class Log:
    """Where a partition begins and ends, and, for a reset to a time, the first offset from then on."""

    start: int
    end: int
    at_time: int | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """``note`` says where the log did not allow what was asked."""

    offset: int
    note: str = ""


def target(scenario: Scenario, log: Log, committed: int | None, *, tp: str) -> Target:
    """The offset a partition is set to, within its log; ``tp`` names the partition in errors."""
    match scenario.to:
        case To.EARLIEST:
            return Target(log.start)
        case To.LATEST:
            return Target(log.end)
        case To.CURRENT:
            # As it is, even outside of the log: an offset without a commit becomes one, all others stay.
            return Target(log.end, "had no commit") if committed is None else Target(committed)
        case To.TIME:
            return Target(log.end, "nothing is that new") if log.at_time is None else Target(log.at_time)
        case To.OFFSET:
            return within(log, scenario.number)
        case To.SHIFT:
            if committed is None:
                raise ConfigError(
                    f"{tp} cannot be shifted: the group has committed nothing there.",
                    hint="Leave this partition out with --topic TOPIC:PARTITIONS, or use --to-offset.",
                )
            return within(log, committed + scenario.number)


def within(log: Log, wanted: int) -> Target:
    if wanted > log.end:
        return Target(log.end, f"{wanted} is past the end")
    if wanted < log.start:
        return Target(log.start, f"{wanted} is before the start")
    return Target(wanted)


@dataclass(frozen=True, slots=True)
class Effect:
    """Records that the group will get once more, and records that it will never get."""

    repeated: int
    skipped: int


def effect(old: int | None, new: int, log: Log, finished: Sequence[Range] = ()) -> Effect:
    """``finished`` are the ranges of the offset map, which a reset clears: what they name above ``new`` comes again.

    Offsets are counted, which are more than records where a log has gaps. Without an old offset nobody knows where
    the group would have begun, so nothing is counted.
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
    """How many offsets of the ranges lie between the two."""
    return sum(max(0, min(last, end) - max(first, start)) for first, last in ranges)
