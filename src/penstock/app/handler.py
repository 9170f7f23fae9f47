"""A handler: the user's function together with the options it was declared with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import NoneType
from typing import Any, Literal, get_args

from penstock.app.signature import Signature, read_signature
from penstock.core.breaker import Breaker
from penstock.core.lanes import Order
from penstock.core.outcome import Reject, Skip
from penstock.core.retry import RetryPolicy, check_policy
from penstock.core.retry_topic import RetryTopic, checked_durations, retry_topics
from penstock.core.settings import client_settings, hide_passwords
from penstock.errors import ConfigError

Start = Literal["earliest", "latest"]
WorkerKind = Literal["auto", "process"]
CommitMode = Literal["auto", "record", "manual"]

# Kafka's own rule for names of topics.
_TOPIC_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_MAX_TOPIC_LENGTH = 249

# One to work on and one that may arrive while fetching is being paused.
_MIN_IN_FLIGHT = 2


@dataclass(frozen=True, kw_only=True)
class Handler:
    """Durations are in seconds here; ``App.consume`` documents each option."""

    name: str
    function: Callable[..., Any]
    topics: tuple[str, ...]
    group: str
    to: str | None
    dead_letter: str | None
    retry: RetryPolicy
    retry_topics: tuple[str, ...] = ()  # durations, as they stand in the names of topics
    breaker: Breaker | None = None
    order: Order
    null_keys_in_order: bool
    concurrency: int
    workers: WorkerKind = "auto"
    batch: int | None = None
    linger: float = 0.0
    members: int = 1
    start: Start
    commit: CommitMode = "auto"
    commit_every: float
    commit_after: int | None = None
    max_in_flight: int
    drain_timeout: float
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", client_settings(self.settings))
        returns = self.signature.returns
        self._check_failures()
        self._check_topics()
        self._check_numbers()
        if self.order not in get_args(Order):
            raise self._wrong(f"order={self.order!r} is not an order.", 'Use "partition", "key" or "none".')
        self._check_workers()
        if self.start not in ("earliest", "latest"):
            raise self._wrong(f"start={self.start!r} is not a place to start.", 'Use "earliest" or "latest".')
        if self.to is None and returns not in (Any, None, NoneType):
            raise self._wrong(
                "it returns a value, which has nowhere to go.",
                "Name an output topic with to=..., or annotate it with -> None.",
            )

    def __repr__(self) -> str:
        # Settings hide their own secrets; a URL among the other options may hold a password too.
        shown = (f"{each.name}={hide_passwords(repr(getattr(self, each.name)))}" for each in fields(self))
        return f"Handler({', '.join(shown)})"

    @cached_property
    def signature(self) -> Signature:
        return read_signature(self.function, batch=self.batch is not None)

    @cached_property
    def delayed(self) -> dict[str, RetryTopic]:
        """Its retry topics, by name."""
        return {topic.name: topic for topic in retry_topics(self.topics, self.retry_topics)}

    @property
    def consumed_topics(self) -> tuple[str, ...]:
        """All that it subscribes to: its sources and their retry topics."""
        return (*self.topics, *self.delayed)

    def _check_failures(self) -> None:
        """What becomes of failed records."""
        try:
            check_policy(self.retry)
            checked_durations(self.retry_topics)
        except ConfigError as error:
            raise self._wrong(error.problem, error.hint) from error
        for kind in self.retry if isinstance(self.retry, Mapping) else ():
            if issubclass(kind, Skip | Reject):
                raise self._wrong(
                    f"retry lists {kind.__name__}, which is never tried again.", "Raise another error to have a retry."
                )
        if self.breaker is not None and not isinstance(self.breaker, Breaker):
            raise self._wrong(f"breaker={self.breaker!r} is not a Breaker.", "Use Breaker(share=0.9, window=1000).")
        if self.breaker is not None and self.dead_letter is None:
            raise self._wrong(
                "a breaker guards a dead-letter topic, and there is none.",
                "Name one with dead_letter=..., or leave breaker= out: the first failed record stops the app anyway.",
            )
        if self.retry_topics and self.start != "earliest":
            # A record may be in a retry topic before the group has committed anything there.
            raise self._wrong(
                f"with start={self.start!r} records that wait in a new retry topic could be passed over.",
                'With retry_topics= use start="earliest".',
            )

    def _check_topics(self) -> None:
        if not self.topics:
            raise self._wrong("no topic is named.", 'Name at least one: @app.consume("orders").')
        for topic in (*self.consumed_topics, self.to, self.dead_letter):
            if topic is None:
                continue
            legal = isinstance(topic, str) and 0 < len(topic) <= _MAX_TOPIC_LENGTH and _TOPIC_LETTERS.issuperset(topic)
            if not legal or topic in (".", ".."):
                raise self._wrong(
                    f"{topic!r} is not a topic name.",
                    "Kafka takes up to 249 letters, digits, dots, dashes and underscores.",
                )
        for option, topic in (("to", self.to), ("dead_letter", self.dead_letter)):
            if topic in self.consumed_topics:
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
        if self.commit_every <= 0:
            raise self._wrong(
                f"commit_every={self.commit_every:g} leaves no time between commits.",
                'Use a duration such as "100ms", or commit="record" to commit as soon as a record is finished.',
            )
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
