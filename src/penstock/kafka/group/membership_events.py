"""What an open member's thread wants done by the thread that owns the consumer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock.core.records.record import TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionsAssigned:
    """These are ours from now on."""

    tps: tuple[TopicPartition, ...]
    done: Callable[[], None]


@dataclass(frozen=True, slots=True)
class PartitionsRevoked:
    """Finish and commit these, and let go of them."""

    tps: tuple[TopicPartition, ...]
    done: Callable[[], None]


@dataclass(frozen=True, slots=True)
class PartitionsLost:
    """These may be somebody else's already. ``losses`` counts such notices."""

    tps: tuple[TopicPartition, ...]
    losses: int


@dataclass(frozen=True, slots=True)
class Committed:
    """The answer to a commit, with the reasons for what was refused."""

    commits: Mapping[TopicPartition, tuple[int, str]]
    refused: Mapping[TopicPartition, str]


@dataclass(frozen=True, slots=True)
class MemberFailed:
    """The membership is over, because of this."""

    error: BaseException


Notice = PartitionsAssigned | PartitionsRevoked | PartitionsLost | Committed | MemberFailed
