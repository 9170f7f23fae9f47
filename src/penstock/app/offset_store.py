"""The interface of stores that keep progress outside of Kafka, and the check of ``offsets=``."""

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
class SavedProgress:
    """The progress of a partition in a store, and the ``token`` of the claim that has just read it.

    ``offset`` is the next offset to handle, None if nothing was saved yet. ``metadata`` is the text that was saved with
    it: the offset map. ``finished`` are further ranges of finished offsets, each without its end, in any order.
    """

    token: int
    offset: int | None = None
    metadata: str = ""
    finished: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a partition to save, if the claim with this ``token`` is still the latest."""

    token: int
    offset: int
    metadata: str


@runtime_checkable
class OffsetStore(Protocol):
    """Keeps the progress of groups. Each call is atomic, and durable when it returns.

    A member makes one call at a time, on several threads. Members of several processes call at the same time.
    """

    def claim(self, group: str, tps: Sequence[TopicPartition]) -> Mapping[TopicPartition, SavedProgress]:
        """The caller now owns these partitions: give each a token that is greater than all its earlier tokens."""

    def save(self, group: str, progress: Mapping[TopicPartition, Progress]) -> Collection[TopicPartition]:
        """Save this progress, except for partitions that were claimed again since their token. Returns those."""

    def forget(self, group: str, tps: Mapping[TopicPartition, int]) -> None:
        """Delete the offsets of these partitions if their tokens are the latest.

        The engine calls it when a topic was recreated, or when ``from_`` overrides the committed offset.
        """


class OpenTransaction(Protocol):
    """One transaction of the user's database."""

    tx: Any
    """The argument of the handler."""

    def finish(self, tp: TopicPartition, token: int, offsets: Sequence[int]) -> None:
        """Mark these records as finished if the transaction commits. Raises AlreadyFinished or ClaimLost."""


@runtime_checkable
class TransactionalStore(OffsetStore, Protocol):
    """A store whose transactions handlers can write in."""

    def transaction(self, group: str) -> AbstractContextManager[OpenTransaction]:
        """Commits at the end of the block, and rolls back if the block raises."""


@runtime_checkable
class RememberingStore(TransactionalStore, Protocol):
    """A store that keeps the ids of ``dedupe=`` in the transactions of handlers."""

    def remember(
        self, tx: Any, *, group: str, handler: str, record_id: str, origin: str, now: float, until: float
    ) -> bool:
        """Remember the id until then; False if a record with another origin was handled with it and ``now`` counts."""


class AlreadyFinished(Exception):  # noqa: N818 - as the outcomes that users raise
    """Some of these records are finished already: a commit that seemed to fail had succeeded."""


class ClaimLost(DependencyUnavailable):
    """Another member has claimed the partition, so this member can no longer save progress of it."""

    def __init__(self, tp: TopicPartition) -> None:
        super().__init__(f"another member has claimed {tp[0]}[{tp[1]}]", seconds=_CLAIMED_SECONDS)


def check_offsets(offsets: object) -> None:
    """Raise an error unless ``offsets`` is a store or the URL of one."""
    if isinstance(offsets, str):
        known.remember_url(offsets)
        if not offsets.startswith(_URLS):
            raise ConfigError(f"offsets={hide_passwords(offsets)!r} is not a store of offsets.", hint=_HINT)
        path = offsets.partition(":")[2].strip("/")
        if not path or path == ":memory:":
            raise ConfigError(
                f"offsets={hide_passwords(offsets)!r} loses progress when the process ends.",
                hint="Name a file or a database.",
            )
    elif not isinstance(offsets, OffsetStore):
        raise ConfigError(f"offsets={offsets!r} is not a store of offsets.", hint=_HINT)


def takes_transactions(offsets: object) -> bool:
    """Whether a handler can write in the transaction that saves its progress."""
    return isinstance(offsets, TransactionalStore) or (isinstance(offsets, str) and not offsets.startswith("file:"))
