"""Events from a self-managed member's thread to the fetcher thread, which owns the consumer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock.core.records.record import TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionsAssigned:
    """Start to consume these partitions, then call ``done``."""

    tps: tuple[TopicPartition, ...]
    done: Callable[[], None]


@dataclass(frozen=True, slots=True)
class PartitionsRevoked:
    """Drain and commit these partitions, stop consuming them, then call ``done``."""

    tps: tuple[TopicPartition, ...]
    done: Callable[[], None]


@dataclass(frozen=True, slots=True)
class PartitionsLost:
    """Stop consuming these partitions without a commit: another member may own them. ``losses`` counts these events."""

    tps: tuple[TopicPartition, ...]
    losses: int


@dataclass(frozen=True, slots=True)
class OffsetsCommitted:
    """The answer to a commit, with a reason for each refused partition."""

    commits: Mapping[TopicPartition, tuple[int, str]]
    refused: Mapping[TopicPartition, str]


@dataclass(frozen=True, slots=True)
class MemberFailed:
    """The member's thread ended with this error."""

    error: BaseException


MembershipEvent = PartitionsAssigned | PartitionsRevoked | PartitionsLost | OffsetsCommitted | MemberFailed
