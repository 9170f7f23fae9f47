"""A handler: the user's function together with the options it was declared with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import NoneType
from typing import Any, Literal, get_args

from penstock.app.fetching import (
    OnPartitions,
    Protocol,
    Start,
    check_callback,
    check_membership,
    check_place_in_log,
    check_sources,
    is_topic_name,
    matches,
)
from penstock.app.signature import Signature, read_signature
from penstock.core.lanes import Order
from penstock.core.record import TopicPartition
from penstock.core.retry import Retry
from penstock.errors import ConfigError

WorkerKind = Literal["auto", "process"]
CommitMode = Literal["auto", "record", "manual"]

# One to work on and one that may arrive while fetching is being paused.
_MIN_IN_FLIGHT = 2


@dataclass(frozen=True, kw_only=True)
class Handler:
    """Durations are in seconds here; ``App.consume`` documents each option."""

    name: str
    function: Callable[..., Any]
    topics: tuple[str, ...]
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()
    group: str
    to: str | None
    dead_letter: str | None
    retry: Retry
    order: Order
    null_keys_in_order: bool
    concurrency: int
    workers: WorkerKind = "auto"
    batch: int | None = None
    linger: float = 0.0
    members: int = 1
    protocol: Protocol = "classic"
    assignor: str | None = None
    static_id: str | None = None
    rack: str | None = None
    start: Start
    from_: Start | None = None
    on_assigned: OnPartitions | None = None
    on_revoked: OnPartitions | None = None
    on_lost: OnPartitions | None = None
    commit: CommitMode = "auto"
    commit_every: float
    commit_after: int | None = None
    max_in_flight: int
    drain_timeout: float
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        returns = self.signature.returns
        self._check_topics()
        self._check_numbers()
        if self.order not in get_args(Order):
            raise self._wrong(f"order={self.order!r} is not an order.", 'Use "partition", "key" or "none".')
        self._check_workers()
        self._check_fetching()
        if self.to is None and returns not in (Any, None, NoneType):
            raise self._wrong(
                "it returns a value, which has nowhere to go.",
                "Name an output topic with to=..., or annotate it with -> None.",
            )

    @cached_property
    def signature(self) -> Signature:
        return read_signature(self.function, batch=self.batch is not None)

    @property
    def source(self) -> str:
        """What it consumes, in words."""
        if self.pattern is not None:
            return f"topics like {self.pattern}"
        return ", ".join(self.topics or (f"{topic}[{partition}]" for topic, partition in self.partitions))

    def consumes(self, topic: str) -> bool:
        """Whether this topic, or some partition of it, is one of its sources."""
        if self.pattern is not None:
            return matches(self.pattern, topic)
        return topic in self.topics or any(topic == named for named, _ in self.partitions)

    @property
    def cooperates(self) -> bool:
        """Whether a rebalance takes only what moves; with the older assignors everybody gives everything back."""
        return not self.partitions and (self.protocol == "consumer" or self.assignor in (None, "cooperative-sticky"))

    def _check_fetching(self) -> None:
        check_place_in_log("start", self.start, self._wrong)
        if self.from_ is not None:
            check_place_in_log("from_", self.from_, self._wrong)
        check_membership(
            protocol=self.protocol,
            assignor=self.assignor,
            static_id=self.static_id,
            rack=self.rack,
            members=self.members,
            alone=bool(self.partitions),
            settings=self.settings,
            wrong=self._wrong,
        )
        for option in ("on_assigned", "on_revoked", "on_lost"):
            check_callback(option, getattr(self, option), self._wrong)

    def _check_topics(self) -> None:
        check_sources(self.topics, self.pattern, self.partitions, self._wrong)
        for topic in (*self.topics, self.to, self.dead_letter):
            if topic is not None and not is_topic_name(topic):
                raise self._wrong(
                    f"{topic!r} is not a topic name.",
                    "Kafka takes up to 249 letters, digits, dots, dashes and underscores.",
                )
        for option, topic in (("to", self.to), ("dead_letter", self.dead_letter)):
            if topic is not None and self.consumes(topic):
                raise self._wrong(
                    f"{option}={topic!r} is also its source, so it would feed itself for ever.", "Use another topic."
                )
        if self.to is not None and self.to == self.dead_letter:
            raise self._wrong(f"to and dead_letter are both {self.to!r}.", "Give dead letters a topic of their own.")

    def _check_numbers(self) -> None:
        counts = {
            "concurrency": self.concurrency,
            "max_in_flight": self.max_in_flight,
            "members": self.members,
            "batch": 1 if self.batch is None else self.batch,
            "commit_after": 1 if self.commit_after is None else self.commit_after,
        }
        for option, value in counts.items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise self._wrong(f"{option}={value!r} is not a count.", "Use a whole number from 1 on.")
        if self.max_in_flight < _MIN_IN_FLIGHT:
            raise self._wrong(f"max_in_flight={self.max_in_flight} is too few to work with.", "Use 2 or more.")
        if self.batch is not None and self.batch > self.max_in_flight:
            raise self._wrong(
                f"batch={self.batch} can never fill up with max_in_flight={self.max_in_flight}.", "Raise max_in_flight."
            )

    def _check_workers(self) -> None:
        if self.workers not in get_args(WorkerKind):
            raise self._wrong(
                f"workers={self.workers!r} is not a kind of worker.",
                'Use "process" for computing; "auto" gives threads to def and an event loop to async def.',
            )
        if self.workers == "process" and self.signature.is_async:
            raise self._wrong("it is async, but workers are processes.", "Write it with def, or leave workers= out.")
        if self.commit not in get_args(CommitMode):
            raise self._wrong(f"commit={self.commit!r} is not a way to commit.", 'Use "auto", "record" or "manual".')
        if self.commit == "manual" and not self.signature.takes_record:
            raise self._wrong(
                'with commit="manual" it has to call record.ack(), so it has to take the record.',
                "Add a parameter: record: Record (or records: list[Record] with batch=).",
            )
        if self.commit == "manual" and self.to is not None:
            raise self._wrong(
                'commit="manual" goes without to=: a record with an output is finished when Kafka has the output.',
                "Leave one of them out.",
            )
        if self.commit == "manual" and self.workers == "process":
            raise self._wrong("record.ack() does not reach out of a worker process.", 'Use commit="auto".')

    def _wrong(self, problem: str, hint: str) -> ConfigError:
        return ConfigError(f"Handler {self.name}: {problem}", hint=hint)
