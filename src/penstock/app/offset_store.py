"""Where progress is kept, if not in Kafka: what such a store has to do, and what of it handlers get to see."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from penstock.core.failures.outcome import DependencyUnavailable
from penstock.core.records.record import TopicPartition
from penstock.core.settings import hide_passwords, known
from penstock.errors import ConfigError

_URLS = ("file:", "sqlite:", "postgresql:", "postgresql+")
_HINT = 'Use "postgresql://...", "sqlite:///path", "file:path", or an object with claim, save and forget.'
_CLAIMED_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Kept:
    """What a store has of a partition, and the ``token`` of whoever has just claimed it.

    ``offset`` is where to go on, None where nothing was saved yet. ``note`` is what was saved along with it.
    ``finished`` are further ranges of finished offsets, each up to and without its end, in any order.
    """

    token: int
    offset: int | None = None
    note: str = ""
    finished: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """What a store is to keep of a partition, if the claim with this ``token`` is still the last one."""

    token: int
    offset: int
    note: str


@runtime_checkable
class OffsetStore(Protocol):
    """Keeps the progress of groups. Each call is one atomic step, and what it returned for outlives a power cut.

    A member makes one call at a time, on several threads; members of several processes call at once.
    """

    def claim(self, group: str, tps: Sequence[TopicPartition]) -> Mapping[TopicPartition, Kept]:
        """The caller owns these partitions from now on: give each a token that is greater than all before."""

    def save(self, group: str, progress: Mapping[TopicPartition, Progress]) -> Collection[TopicPartition]:
        """Keep this, but for partitions that were claimed again since their token; returns those."""

    def forget(self, group: str, tps: Mapping[TopicPartition, int]) -> None:
        """Their offsets count no more, by these tokens: the log was made anew, or is read again on purpose."""


class OpenTransaction(Protocol):
    """One transaction of the user's database."""

    tx: Any
    """What the handler gets."""

    def finish(self, tp: TopicPartition, token: int, offsets: Sequence[int]) -> None:
        """These records count as finished if the transaction does; raises AlreadyFinished or ClaimLost."""


@runtime_checkable
class TransactionalStore(OffsetStore, Protocol):
    """A store whose transactions handlers can write in."""

    def transaction(self, group: str) -> AbstractContextManager[OpenTransaction]:
        """Committed at the end of the block, rolled back where it raises."""


class AlreadyFinished(Exception):  # noqa: N818 - as the outcomes that users raise
    """Of these records, some are finished: a commit that seemed to fail did not."""


class ClaimLost(DependencyUnavailable):
    """Another member has claimed the partition, so nothing that this one does about it counts."""

    def __init__(self, tp: TopicPartition) -> None:
        super().__init__(f"another member has claimed {tp[0]}[{tp[1]}]", seconds=_CLAIMED_SECONDS)


def check_offsets(offsets: object) -> None:
    """Whether this names or is a place to keep progress."""
    if isinstance(offsets, str):
        known.remember_url(offsets)
        if not offsets.startswith(_URLS):
            raise ConfigError(f"offsets={hide_passwords(offsets)!r} is no place to keep progress.", hint=_HINT)
        path = offsets.partition(":")[2].strip("/")
        if not path or path == ":memory:":
            raise ConfigError(
                f"offsets={hide_passwords(offsets)!r} would not outlive the process.", hint="Name a file or a database."
            )
    elif not isinstance(offsets, OffsetStore):
        raise ConfigError(f"offsets={offsets!r} is no place to keep progress.", hint=_HINT)


def takes_transactions(offsets: object) -> bool:
    """Whether a handler can write in the same transaction as its progress."""
    return isinstance(offsets, TransactionalStore) or (isinstance(offsets, str) and not offsets.startswith("file:"))
