"""What the threads of a member tell each other. The dispatcher has one inbox for all of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue

from penstock.core.failures.outcome import Failed
from penstock.core.progress.offset_map import Range
from penstock.core.records.out_of_range import OutOfRange
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.effects import Send
from penstock.core.scheduling.lanes import AnyRecord
from penstock.core.scheduling.work import Work
from penstock.errors import PenstockError

Offsets = Mapping[TopicPartition, int]
Commits = Mapping[TopicPartition, tuple[int, str]]
"""For each partition the offset and the metadata of its commit."""

# To the dispatcher.


@dataclass(frozen=True, slots=True)
class Fetched:
    """Records by partition, in the order of their offsets, and the partitions whose end was reached, with that end."""

    records: Mapping[TopicPartition, Sequence[AnyRecord]]
    ends: Offsets
    excesses: Mapping[TopicPartition, Mapping[int, int]] = field(default_factory=dict)  # of large values


@dataclass(frozen=True, slots=True)
class Assigned:
    """Partitions that are ours now, with what the group has committed for each, if anything.

    ``starts`` has those that begin elsewhere than at their commit: at this offset, or, for None, where the log starts.
    Those of them that are ``forced`` have a commit that does not count. ``finished`` are ranges that are finished
    besides what a commit's metadata says. ``behind`` are those that are kept elsewhere and stand otherwise in Kafka.
    """

    committed: Mapping[TopicPartition, tuple[int, str] | None]
    starts: Mapping[TopicPartition, int | None] = field(default_factory=dict)
    forced: frozenset[TopicPartition] = frozenset()
    finished: Mapping[TopicPartition, Sequence[Range]] = field(default_factory=dict)
    behind: frozenset[TopicPartition] = frozenset()


@dataclass(frozen=True, slots=True)
class Revoking:
    """Partitions to give back. The answer, once their work is drained, is what to commit for them."""

    tps: Sequence[TopicPartition]
    answer: "SimpleQueue[Commits]"


@dataclass(frozen=True, slots=True)
class Lost:
    """Partitions that somebody else may own already."""

    tps: Sequence[TopicPartition]


@dataclass(frozen=True, slots=True)
class Worked:
    """A worker is through with this."""

    work: Work


@dataclass(frozen=True, slots=True)
class Delivered:
    """Outputs and dead letters that the broker has acknowledged."""

    sends: Sequence[Send]


@dataclass(frozen=True, slots=True)
class Approved:
    """What might have been too large is not, in this form: it can be sent."""

    send: Send


@dataclass(frozen=True, slots=True)
class Refused:
    """What the broker will never take, because of what it is: its record has failed for good."""

    send: Send
    failure: Failed


@dataclass(frozen=True, slots=True)
class Undeliverable:
    """What the cluster does not take, and what has nowhere else to go: the member must stop."""

    send: Send
    error: PenstockError


@dataclass(frozen=True, slots=True)
class CommitAnswer:
    """What became of a commit, partition by partition; a reason where the broker did not accept it."""

    commits: Commits
    refused: Mapping[TopicPartition, str]


@dataclass(frozen=True, slots=True)
class TransactionFailed:
    """A transaction is lost, so what was done since the one before does not count."""

    error: PenstockError


@dataclass(frozen=True, slots=True)
class EngineError:
    """A problem outside of handlers; a fatal one stops the member."""

    error: PenstockError
    fatal: bool


@dataclass(frozen=True, slots=True)
class Rewound:
    """What is fetched of these partitions from now on comes from where they were sent back to."""

    tps: Sequence[TopicPartition]


@dataclass(frozen=True, slots=True)
class Suspended:
    """No poll succeeded for longer than a session, so the membership is in doubt and nothing starts."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Acked:
    """The user says that this record is finished."""

    tp: TopicPartition
    offset: int
    record: AnyRecord


@dataclass(frozen=True, slots=True)
class AckedBelow:
    """The user says that all that waits for acknowledgement below these offsets is finished."""

    offsets: Offsets


@dataclass(frozen=True, slots=True)
class PartitionState:
    """How far an owned partition is; see ``PartitionProgress``."""

    epoch: int
    position: int | None
    committed: int | None
    in_flight: int


@dataclass(frozen=True, slots=True)
class GetProgress:
    """Somebody asks what is owned, and how far it is."""

    answer: "SimpleQueue[dict[TopicPartition, PartitionState]]"


@dataclass(frozen=True, slots=True)
class Left:
    """The fetcher has given everything back and is gone."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop in good order."""

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
    | Refused
    | Undeliverable
    | CommitAnswer
    | TransactionFailed
    | EngineError
    | Rewound
    | Suspended
    | Acked
    | AckedBelow
    | GetProgress
    | Left
    | Stop
)
Inbox = SimpleQueue[ToDispatcher]

# To the fetcher.


@dataclass(frozen=True, slots=True)
class Commit:
    """``assignments`` counts the Assigned that the dispatcher had taken when it asked for this."""

    commits: Commits
    assignments: int


@dataclass(frozen=True, slots=True)
class Pause:
    """Stop fetching these, and go back to the offset where one is given, which is answered with Rewound."""

    tps: Mapping[TopicPartition, int | None]


@dataclass(frozen=True, slots=True)
class Resume:
    tps: Sequence[TopicPartition]


@dataclass(frozen=True, slots=True)
class Seek:
    """Go on from these offsets with partitions that wait for it; ``anew`` where offsets mean other records now."""

    offsets: Offsets
    anew: bool = False


@dataclass(frozen=True, slots=True)
class Renew:
    """The topics of these partitions were made anew, and what was fetched last belongs to logs that are gone."""

    tps: Sequence[TopicPartition]


@dataclass(frozen=True, slots=True)
class StartOver:
    """What was done since the last commit does not count: let everything go, and take it again as it is committed."""

    error: PenstockError


ToFetcher = Commit | Pause | Resume | Seek | Renew | StartOver
