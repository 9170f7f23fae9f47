"""Where a record was first, which the headers of a retry topic carry along."""

from collections.abc import Iterable
from dataclasses import dataclass

PREFIX = "penstock-retry-"

# Between the source's name and the duration in the name of a retry topic.
INFIX = ".retry."

# Of numbers in headers, which anybody may have written: no more digits than the largest offset has.
_MAX_DIGITS = 19
_MAX_INT32 = 2**31 - 1
_MAX_INT64 = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Origin:
    """A place in Kafka, and when it was written there (-1 if the broker does not know)."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.offset}"


def origin_of(here: Origin, headers: Iterable[tuple[str, bytes | None]]) -> Origin:
    """The place that these headers name, if they are of a retry topic of that very source; else ``here``.

    Headers on any other topic are somebody's invention, and must not name the place of a dead letter.
    """
    if INFIX not in here.topic:
        return here
    found = dict(headers)
    topic = (found.get(f"{PREFIX}topic") or b"").decode(errors="replace")
    partition = number(found.get(f"{PREFIX}partition"), most=_MAX_INT32)
    offset = number(found.get(f"{PREFIX}offset"))
    if not topic or not here.topic.startswith(topic + INFIX) or partition is None or offset is None:
        return here
    timestamp = number(found.get(f"{PREFIX}timestamp"))
    return Origin(topic, partition, offset, -1 if timestamp is None else timestamp)


def number(text: bytes | None, *, most: int = _MAX_INT64) -> int | None:
    """A whole number from 0 to ``most`` in decimal digits, or None where it is anything else."""
    if text is None or len(text) > _MAX_DIGITS or not text.isdigit():
        return None
    value = int(text)
    return value if value <= most else None
