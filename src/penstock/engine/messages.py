"""What the threads of a member tell each other. The dispatcher has one inbox for all of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from queue import SimpleQueue

from penstock.core.decisions import Send
from penstock.core.lanes import AnyRecord
from penstock.core.outcome import Failed
from penstock.core.record import TopicPartition
from penstock.engine.work import Work
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


@dataclass(frozen=True, slots=True)
class Assigned:
    """Partitions that are ours now, with what the group has committed for each, if anything."""

    committed: Mapping[TopicPartition, tuple[int, str] | None]


@dataclass(frozen=True, slots=True)
class Revoking:
    """Partitions to give back. The answer, once their work is drained, is what to commit for them."""

    places: Sequence[TopicPartition]
    answer: "SimpleQueue[Commits]"


@dataclass(frozen=True, slots=True)
class Lost:
    """Partitions that somebody else may own already."""

    places: Sequence[TopicPartition]


@dataclass(frozen=True, slots=True)
class Worked:
    """A worker is through with this."""

    work: Work


@dataclass(frozen=True, slots=True)
class Delivered:
    """Outputs and dead letters that the broker has acknowledged."""

    sends: Sequence[Send]


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
class Trouble:
    """A problem outside of handlers; a fatal one stops the member."""

    error: PenstockError
    fatal: bool


@dataclass(frozen=True, slots=True)
class Rewound:
    """What is fetched of these partitions from now on comes from where they were sent back to."""

    places: Sequence[TopicPartition]


@dataclass(frozen=True, slots=True)
class Suspended:
    """No poll succeeded for longer than a session, so the membership is in doubt and nothing starts."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Acked:
    """The user says that this record is finished."""

    place: TopicPartition
    offset: int
    record: AnyRecord


@dataclass(frozen=True, slots=True)
class AckedBelow:
    """The user says that all that waits for acknowledgement below these offsets is finished."""

    offsets: Offsets


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
    | Worked
    | Delivered
    | Refused
    | Undeliverable
    | CommitAnswer
    | Trouble
    | Rewound
    | Suspended
    | Acked
    | AckedBelow
    | Left
    | Stop
)
Inbox = SimpleQueue[ToDispatcher]

# To the fetcher.


@dataclass(frozen=True, slots=True)
class Commit:
    commits: Commits


@dataclass(frozen=True, slots=True)
class Pause:
    """Stop fetching these, and go back to the offset where one is given, which is answered with Rewound."""

    places: Mapping[TopicPartition, int | None]


@dataclass(frozen=True, slots=True)
class Resume:
    places: Sequence[TopicPartition]


ToFetcher = Commit | Pause | Resume
