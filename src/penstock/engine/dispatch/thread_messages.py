"""The messages between the threads of a member. The dispatcher has one inbox for all of its messages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

from penstock.app.attempts.work import Work
from penstock.core.failures.outcome import Failed
from penstock.core.progress.offset_map import Range
from penstock.core.records.out_of_range import OutOfRange
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.effects import Send
from penstock.core.scheduling.lanes import AnyRecord
from penstock.errors import PenstockError

Offsets = Mapping[TopicPartition, int]
Commits = Mapping[TopicPartition, tuple[int, str]]
"""By partition: the offset and the metadata to commit."""

# To the dispatcher.


@dataclass(frozen=True, slots=True)
class Fetched:
    """Fetched records by partition, in the order of their offsets, and the ends of partitions read to their end."""

    records: Mapping[TopicPartition, Sequence[AnyRecord]]
    ends: Offsets
    excesses: Mapping[TopicPartition, Mapping[int, int]] = field(default_factory=dict)  # see ``InFlight.excesses``


@dataclass(frozen=True, slots=True)
class Assigned:
    """Partitions that were assigned to this member, each with the group's commit or None.

    ``starts`` overrides the commit: the partition begins at this offset, or, for None, at the start of the log.
    ``forced`` has those of ``starts`` that have a commit, which ``from_`` overrides. ``finished`` has finished ranges
    in addition to those in the commit's metadata. ``behind`` has partitions whose progress is in a store and whose
    commit in Kafka differs from it.
    """

    committed: Mapping[TopicPartition, tuple[int, str] | None]
    starts: Mapping[TopicPartition, int | None] = field(default_factory=dict)
    forced: frozenset[TopicPartition] = frozenset()
    finished: Mapping[TopicPartition, Sequence[Range]] = field(default_factory=dict)
    behind: frozenset[TopicPartition] = frozenset()


@dataclass(frozen=True, slots=True)
class Revoking:
    """Partitions that the group revokes. The answer, after they are drained, is what to commit for them."""

    tps: Sequence[TopicPartition]
    answer: "SimpleQueue[Commits]"


@dataclass(frozen=True, slots=True)
class Lost:
    """Partitions that this member has lost: another member may own them already."""

    tps: Sequence[TopicPartition]


@dataclass(frozen=True, slots=True)
class Worked:
    """A worker has finished this bundle."""

    work: Work


@dataclass(frozen=True, slots=True)
class Delivered:
    """Produced records that the broker has acknowledged."""

    sends: Sequence[Send]


@dataclass(frozen=True, slots=True)
class Approved:
    """With exactly-once: the broker accepts these outputs of a record, one of which might have been too large."""

    sends: Sequence[Send]


@dataclass(frozen=True, slots=True)
class OutputRefused:
    """The broker will never accept this record, because of its content. So the consumed record has failed for good."""

    send: Send
    failure: Failed


@dataclass(frozen=True, slots=True)
class Undeliverable:
    """The cluster does not accept this record, or it is a dead letter that is refused: the member must stop."""

    send: Send
    error: PenstockError


@dataclass(frozen=True, slots=True)
class CommitAnswer:
    """The answer to a commit; ``refused`` has the reason for each partition that the broker did not accept.

    ``is_last``: it was the last commit of a revoke. The answer to an earlier commit of the dispatcher is still to come.
    """

    commits: Commits
    refused: Mapping[TopicPartition, str]
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class TransactionFailed:
    """A transaction failed, so nothing since the previous transaction counts."""

    error: PenstockError


@dataclass(frozen=True, slots=True)
class EngineError:
    """A problem outside of handlers; a fatal one stops the member."""

    error: PenstockError
    fatal: bool


@dataclass(frozen=True, slots=True)
class Rewound:
    """The fetcher has seeked these partitions back; records fetched from now on start at the new position."""

    tps: Sequence[TopicPartition]


@dataclass(frozen=True, slots=True)
class Suspended:
    """No poll succeeded for longer than the session timeout: start no record until the membership is confirmed."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Acked:
    """The user acknowledges this record (``record.ack()``)."""

    tp: TopicPartition
    offset: int
    record: AnyRecord


@dataclass(frozen=True, slots=True)
class AckedBelow:
    """The user acknowledges all handled records below these offsets (``app.commit()``)."""

    offsets: Offsets


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The progress of an owned partition; see ``PartitionProgress``."""

    epoch: int
    position: int | None
    committed: int | None
    in_flight: int


@dataclass(frozen=True, slots=True)
class Ask:
    """Calls ``question`` on the dispatcher's thread, which owns what it reads or changes. It must not raise."""

    question: Callable[[], Any]
    answer: "SimpleQueue[Any]"


@dataclass(frozen=True, slots=True)
class Left:
    """The fetcher has left the group and ended."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Finish what is in progress, commit, and leave the group."""

    reason: str


ToDispatcher = (
    Fetched
    | Assigned
    | Revoking
    | Lost
    | OutOfRange
    | Worked
    | Delivered
    | Approved
    | OutputRefused
    | Undeliverable
    | CommitAnswer
    | TransactionFailed
    | EngineError
    | Rewound
    | Suspended
    | Acked
    | AckedBelow
    | Ask
    | Left
    | Stop
)
Inbox = SimpleQueue[ToDispatcher]

# To the fetcher. ``assignments`` is how many ``Assigned`` messages the dispatcher had taken when it sent the message.
# Meanwhile a partition may have been assigned again: then the message is about an epoch that is over.


@dataclass(frozen=True, slots=True)
class Commit:
    commits: Commits
    assignments: int


@dataclass(frozen=True, slots=True)
class Pause:
    """Pause these partitions. Where an offset is given, also seek back to it and answer with ``Rewound``."""

    tps: Mapping[TopicPartition, int | None]
    assignments: int


@dataclass(frozen=True, slots=True)
class Resume:
    tps: Sequence[TopicPartition]
    assignments: int


@dataclass(frozen=True, slots=True)
class Seek:
    """Continue at these offsets with partitions that were out of range; ``recreated`` if their logs were recreated."""

    offsets: Offsets
    assignments: int
    recreated: bool = False


@dataclass(frozen=True, slots=True)
class TopicsRecreated:
    """The topics of these partitions were recreated; records fetched before belong to the deleted logs."""

    tps: Sequence[TopicPartition]


@dataclass(frozen=True, slots=True)
class StartOver:
    """Nothing since the last commit counts: drop all partitions, and take them again at their commits."""

    error: PenstockError


ToFetcher = Commit | Pause | Resume | Seek | TopicsRecreated | StartOver
