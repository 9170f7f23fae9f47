"""Retry topics: where records wait for their next attempt when that is further off than memory should hold."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.core.failures.dead_letter import MAX_MESSAGE_BYTES, MAX_NAME_BYTES, bounded, kept_headers
from penstock.core.failures.outcome import Failed, ProducerRecord
from penstock.core.records.origin import INFIX, PREFIX, number
from penstock.core.records.record import Header, Record
from penstock.core.settings import redacted
from penstock.core.text.durations import Duration, seconds
from penstock.errors import ConfigError

# No Retry is that patient; more can only be damage.
_MAX_ATTEMPT = 1_000_000

# How far the clocks of the members of a group may be apart.
_CLOCK_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class RetryTopic:
    """Every record of it waits equally long, so they fall due in the order in which they were written."""

    name: str
    source: str
    seconds: float


def retry_topics(sources: Sequence[str], durations: Sequence[str]) -> tuple[RetryTopic, ...]:
    return tuple(
        RetryTopic(f"{source}{INFIX}{duration}", source, seconds(duration, name="retry_topics"))
        for source in sources
        for duration in durations
    )


def checked_durations(durations: Sequence[Duration]) -> tuple[str, ...]:
    """Durations as they stand in the names of topics: ascending, and each above zero."""
    if isinstance(durations, str) or not isinstance(durations, Sequence):
        raise ConfigError(
            f"retry_topics={durations!r} is not a list of durations.", hint='Write it as a list: ["1m", "10m"].'
        )
    waits = [seconds(duration, name="retry_topics") for duration in durations]
    if any(wait <= 0 for wait in waits) or waits != sorted(set(waits)):
        raise ConfigError(
            f"retry_topics={list(durations)!r} does not ascend.",
            hint='List each duration once, the shortest first: ["1m", "10m"].',
        )
    return tuple(map(_label, durations))


def _label(duration: Duration) -> str:
    if isinstance(duration, str):
        return "".join(duration.split())
    return f"{duration:.3f}".rstrip("0").rstrip(".") + "s"


def retry_record(
    record: Record, failure: Failed, *, topic: str, group: str, attempt: int, due: float
) -> ProducerRecord:
    """The record, untouched, with headers that say where it was first, and when and as which attempt it comes back.

    ``due`` is in seconds since 1970. Headers of an earlier wait are replaced, so they do not pile up.
    """
    origin = record.origin
    notes = {
        "topic": origin.topic,
        "partition": str(origin.partition),
        "offset": str(origin.offset),
        "timestamp": str(origin.timestamp_ms),
        "group": bounded(group, MAX_NAME_BYTES),
        "attempt": str(attempt),
        "due": str(round(due * 1000)),
        "error-type": bounded(failure.error_type, MAX_NAME_BYTES),
        "error-message": bounded(redacted(failure.message), MAX_MESSAGE_BYTES),
    }
    kept = kept_headers(record, failure, without=(PREFIX,))
    added: tuple[Header, ...] = tuple((PREFIX + name, value.encode()) for name, value in notes.items())
    return ProducerRecord(topic, record.key, record.value, kept + added)


@dataclass(frozen=True, slots=True)
class Return:
    """What the headers of a record in a retry topic say: how often it failed, and how many seconds it has to wait yet.

    ``ours`` is False for a record of another group, whose affair it is. ``problem`` says what is wrong with them.
    """

    failures: int
    wait: float
    ours: bool = True
    problem: str = ""


def read_return(headers: Sequence[Header], *, group: str, longest: float, now: float) -> Return:
    """``longest`` is how long any record of this topic waits, ``now`` is in seconds since 1970.

    Anybody may write to a topic, so nothing in here is believed that cannot be: what is damaged is due now, or at its
    first attempt.
    """
    found = dict(headers)
    theirs = found.get(f"{PREFIX}group")
    if theirs is not None and theirs != bounded(group, MAX_NAME_BYTES).encode():
        return Return(0, 0.0, ours=False)
    problems = []
    attempt = number(found.get(f"{PREFIX}attempt"), most=_MAX_ATTEMPT)
    if not attempt:
        problems.append(f"{PREFIX}attempt is not the number of an attempt, so this is taken for the first")
    due = number(found.get(f"{PREFIX}due"))
    wait = 0.0 if due is None else max(0.0, due / 1000 - now)
    if due is None or wait > longest + _CLOCK_SECONDS:
        problems.append(f"{PREFIX}due is not a time that this topic can have, so the record is taken for due")
        wait = 0.0
    return Return((attempt or 1) - 1, wait, problem="; ".join(problems))
