"""Retry topics: records wait there for their next attempt if the wait is too long to hold them in memory."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.core.failures.dead_letter import kept_headers
from penstock.core.failures.dead_letter_headers import MAX_MESSAGE_BYTES, MAX_NAME_BYTES, bounded
from penstock.core.failures.outcome import Delayed, Failed, ProducerRecord
from penstock.core.records.origin import RETRY_INFIX, RETRY_PREFIX, RetryHeader, number
from penstock.core.records.record import Header, Record
from penstock.core.settings import redacted
from penstock.core.text.durations import Duration, seconds
from penstock.errors import ConfigError

# No Retry allows this many attempts: a larger number in a header is damaged.
_MAX_ATTEMPT = 1_000_000

# By how much the clocks of two members of a group may differ.
_CLOCK_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class RetryTopic:
    """All records of one retry topic wait for the same time, so they are due in the order of their offsets."""

    name: str
    source: str
    seconds: float


def retry_topics(sources: Sequence[str], durations: Sequence[str]) -> tuple[RetryTopic, ...]:
    return tuple(
        RetryTopic(f"{source}{RETRY_INFIX}{duration}", source, seconds(duration, name="retry_topics"))
        for source in sources
        for duration in durations
    )


def checked_durations(durations: Sequence[Duration]) -> tuple[str, ...]:
    """The durations as they appear in the names of the topics; each must be above zero, and they must ascend."""
    if isinstance(durations, str) or not isinstance(durations, Sequence):
        raise ConfigError(
            f"retry_topics={durations!r} is not a list of durations.", hint='Write it as a list: ["1m", "10m"].'
        )
    waits = [seconds(duration, name="retry_topics") for duration in durations]
    if any(wait <= 0 for wait in waits) or waits != sorted(set(waits)):
        raise ConfigError(
            f"retry_topics={list(durations)!r} is not a list of ascending durations above 0.",
            hint='List each duration once, the shortest first: ["1m", "10m"].',
        )
    return tuple(map(_label, durations))


def _label(duration: Duration) -> str:
    if isinstance(duration, str):
        return "".join(duration.split())
    return f"{duration:.3f}".rstrip("0").rstrip(".") + "s"


def retry_record(
    record: Record, why: Failed | Delayed, *, topic: str, group: str, attempt: int, due: float
) -> ProducerRecord:
    """The record for a retry topic: key, value and headers unchanged, plus the headers of ``RetryHeader``.

    ``attempt`` is the number of the next attempt, and ``due`` is when the record leaves the topic, in seconds since
    1970. The headers replace those of an earlier wait.
    """
    source = record.origin
    values = {
        RetryHeader.TOPIC: source.topic,
        RetryHeader.PARTITION: str(source.partition),
        RetryHeader.OFFSET: str(source.offset),
        RetryHeader.TIMESTAMP: str(source.timestamp_ms),
        RetryHeader.GROUP: bounded(group, MAX_NAME_BYTES),
        RetryHeader.ATTEMPT: str(attempt),
        RetryHeader.DUE: str(round(due * 1000)),
    }
    if isinstance(why, Delayed):
        values[RetryHeader.UNTIL] = str(round(why.until * 1000))
    else:
        values[RetryHeader.ERROR_TYPE] = bounded(why.error_type, MAX_NAME_BYTES)
        values[RetryHeader.ERROR_MESSAGE] = bounded(redacted(why.message), MAX_MESSAGE_BYTES)
    kept = kept_headers(record, why, without=(RETRY_PREFIX,))
    added: tuple[Header, ...] = tuple((name.value, value.encode()) for name, value in values.items())
    return ProducerRecord(topic, record.key, record.value, kept + added)


@dataclass(frozen=True, slots=True)
class RetryInfo:
    """What the headers of a record in a retry topic say: how many attempts failed, and how many seconds it must wait.

    ``of_this_group`` is False if another group wrote the record. ``problem`` says which headers are damaged.
    """

    failures: int
    wait: float
    of_this_group: bool = True
    problem: str = ""


def read_retry_info(headers: Sequence[Header], *, group: str, longest: float, now: float) -> RetryInfo:
    """Read the headers of a record in a retry topic.

    ``longest`` is the wait of this topic in seconds, ``now`` is in seconds since 1970. Any producer can write to the
    topic, so impossible values are not used: without a valid due time the record is due now, and without a valid number
    the next attempt is the first.
    """
    found = dict(headers)
    owner = found.get(RetryHeader.GROUP)
    if owner is not None and owner != bounded(group, MAX_NAME_BYTES).encode():
        return RetryInfo(0, 0.0, of_this_group=False)
    problems = []
    attempt = number(found.get(RetryHeader.ATTEMPT), most=_MAX_ATTEMPT)
    if not attempt:
        problems.append(f"{RetryHeader.ATTEMPT} is not the number of an attempt, so the next one counts as the first")
    due = number(found.get(RetryHeader.DUE))
    wait = 0.0 if due is None else max(0.0, due / 1000 - now)
    if due is None or wait > longest + _CLOCK_SECONDS:
        problems.append(f"{RetryHeader.DUE} is not a possible time for this topic, so the record is due now")
        wait = 0.0
    if RetryHeader.UNTIL in found and number(found[RetryHeader.UNTIL]) is None:
        problems.append(f"{RetryHeader.UNTIL} is not a time, so the handler gets the record when it is due here")
    return RetryInfo((attempt or 1) - 1, wait, problem="; ".join(problems))
