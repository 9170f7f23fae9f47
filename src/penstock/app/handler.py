"""``Handler``: a user's function with the options of its declaration, checked when it is declared."""

import re
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, get_args

from penstock.app.decoders import check_decoders
from penstock.app.offset_store import OffsetStore
from penstock.app.options import CommitMode, Concurrency, Delivery, Mode, RawField, Scale, WorkerKind
from penstock.app.options.consume_options import (
    KNOWN_TO_CLIENT,
    OnPartitions,
    Protocol,
    Start,
    check_callback,
    check_membership,
    check_sources,
    check_start,
    matches,
)
from penstock.app.options.guarantees import check_dedupe, check_guarantees
from penstock.app.options.output_options import check_outputs, output_topic_problem
from penstock.app.options.tracing_option import check_tracing
from penstock.app.options.worker_options import check_workers, largest_concurrency
from penstock.app.out import Out
from penstock.app.resources.wiring import PLAIN, Wiring
from penstock.app.routing.value_types import taken_types
from penstock.app.routing.when import Otherwise, check_otherwise, read_when
from penstock.app.runs.replay_range import ReplayRange
from penstock.app.signature import Signature, read_signature
from penstock.assign import Assignor, assignor_named
from penstock.assign.cooperative import cooperates
from penstock.core.failures.breaker import Breaker
from penstock.core.failures.later import Later
from penstock.core.failures.outcome import Reject, Skip
from penstock.core.failures.restarts import DEFAULT_RESTART
from penstock.core.failures.retry import Retry, RetryPolicy, check_policy
from penstock.core.failures.retry_topic import RetryTopic, checked_durations, retry_topics
from penstock.core.records.record import TopicPartition
from penstock.core.records.record_ids import RecordId
from penstock.core.scheduling.lanes import Order
from penstock.core.scheduling.rate import Rate
from penstock.core.settings import Registry, client_settings, hide_passwords
from penstock.errors import ConfigError, HandlerBug

# One to work on, and one that may arrive before fetching pauses.
_MIN_IN_FLIGHT = 2
# Brokers use client ids in the names of metrics and quotas.
_NOT_IN_A_CLIENT_ID = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, kw_only=True)
class Handler:
    """Durations are in seconds here; ``penstock.app.options`` describes each option."""

    app: str = ""
    name: str
    function: Callable[..., Any]
    topics: tuple[str, ...]
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()
    group: str
    when: Any = None
    otherwise: Otherwise | None = None
    value: Any = None
    key: Any = None
    headers: Any = None
    registry: Registry | None = None
    to: str | tuple[str, ...] | None
    to_value: Any = None
    carry_headers: bool | tuple[str, ...] = False
    dead_letter: str | None
    retry: RetryPolicy
    retry_topics: tuple[str, ...] = ()  # durations, as the names of the topics have them
    breaker: Breaker | None = None
    timeout: float | None = None
    honor_times: bool = False
    dedupe: RecordId | None = None
    mode: Mode = "group"
    delivery: Delivery = "at-least-once"
    order: Order
    null_keys_in_order: bool
    concurrency: Concurrency
    max_concurrency: int = 256
    fair_by: RawField | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    priority: RawField | None = None
    rate: Rate | None = None
    workers: WorkerKind = "auto"
    scale: Scale = "partition"
    batch: int | None = None
    linger: float = 0.0
    members: int = 1
    protocol: Protocol = "classic"
    assignor: str | Assignor | tuple[str | Assignor, ...] | None = None
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
    max_in_flight_bytes: int
    drain_timeout: float
    micro_batch: float = 10.0
    max_micro_batch: int = 1_000_000
    restart: Retry = DEFAULT_RESTART
    tracing: bool = False
    offsets: str | OffsetStore | None = None
    replay_range: ReplayRange | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    wiring: Wiring = PLAIN

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", client_settings(self.settings))
        self._check_decoders()
        self._check_failures()
        check_sources(self.topics, self.pattern, self.partitions, self._wrong)
        check_outputs(self, self._wrong)
        self._check_numbers()
        if self.order not in get_args(Order):
            raise self._wrong(f"order={self.order!r} does not exist.", 'Use "partition", "key" or "none".')
        check_guarantees(self, self._wrong)
        check_workers(self, self._wrong)
        self._check_fetching()
        check_dedupe(self, self._wrong)
        check_tracing(self, self._wrong)
        self._check_routing()

    def __repr__(self) -> str:
        # Settings hide their secrets themselves; a URL in another option may hold a password too.
        shown = (f"{each.name}={hide_passwords(repr(getattr(self, each.name)))}" for each in fields(self))
        return f"Handler({', '.join(shown)})"

    @cached_property
    def signature(self) -> Signature:
        return read_signature(self.function, batch=self.batch is not None)

    def calling(self, function: Callable[..., Any], signature: Signature) -> "Handler":
        """A copy for attempts that calls this function, without the checks of a declaration."""
        made = copy(self)
        # The fields of a frozen dataclass are in its __dict__, and so is a cached property.
        made.__dict__.update(function=function, signature=signature)
        return made

    def wired(self, wiring: Wiring) -> "Handler":
        """A copy with these resources and this middleware, without the checks of a declaration."""
        made = copy(self)
        made.__dict__.update(wiring=wiring)
        return made

    def with_values(self, values: Mapping[str, Any]) -> "Handler":
        """A copy whose resources of these names are made."""
        return self.wired(self.wiring.with_values(values)) if values else self

    @property
    def routes(self) -> "tuple[Handler, ...]":
        """The handlers whose functions run for its records: itself, unless it is a ``RouteGroup``."""
        return (self,)

    @cached_property
    def value_types(self) -> tuple[type, ...]:
        """The types of decoded values that it takes, if ``value`` is a union and it takes only some members of it."""
        return taken_types(self.value, self.signature.hints.get("value"))

    @property
    def is_conditional(self) -> bool:
        """Whether it takes only some of the records."""
        return self.when is not None or bool(self.value_types)

    def without_settings(self) -> "Handler":
        """For other processes: a copy without client settings, which may hold secrets and functions."""
        return replace(self, settings={})

    @property
    def named_settings(self) -> dict[str, Any]:
        """The settings, with app and handler as ``client.id`` if the user has set none. Brokers and tools show it."""
        name = _NOT_IN_A_CLIENT_ID.sub("_", f"{self.app}-{self.name}")
        return {"client.id": name, **self.settings}

    @cached_property
    def delayed(self) -> dict[str, RetryTopic]:
        """The retry topics by name."""
        return {topic.name: topic for topic in retry_topics(self.topics, self.retry_topics)}

    @property
    def consumed_topics(self) -> tuple[str, ...]:
        """All topics that it subscribes to: its sources and their retry topics."""
        return (*self.topics, *self.delayed)

    def _check_decoders(self) -> None:
        try:
            check_decoders(
                self.signature,
                value=self.value,
                key=self.key,
                headers=self.headers,
                has_outputs=self.declares_outputs,
                to_value=self.to_value,
                in_batches=self.batch is not None,
            )
        except ConfigError as error:
            raise self._wrong(error.problem, error.hint) from error

    def _check_failures(self) -> None:
        """Check the options for failed records."""
        try:
            check_policy(self.retry)
            checked_durations(self.retry_topics)
        except ConfigError as error:
            raise self._wrong(error.problem, error.hint) from error
        for kind in self.retry if isinstance(self.retry, Mapping) else ():
            if issubclass(kind, Skip | Reject | Later):
                raise self._wrong(
                    f"retry lists {kind.__name__}, which is never retried.", "Raise another error to get a retry."
                )
        if self.breaker is not None and not isinstance(self.breaker, Breaker):
            raise self._wrong(f"breaker={self.breaker!r} is not a Breaker.", "Use Breaker(share=0.9, window=1000).")
        if self.breaker is not None and self.dead_letter is None:
            raise self._wrong(
                "breaker= counts dead letters, but it has no dead-letter topic.",
                "Name one with dead_letter=..., or leave breaker= out: the first failed record then stops the app.",
            )
        if self.breaker is not None and self.breaker.then == "pause" and self.is_at_most_once:
            raise self._wrong(
                'a breaker with then="pause" attempts records again, which at-most-once does not allow.',
                'Use then="stop", or another delivery.',
            )
        if self.retry_topics and not self.topics:
            raise self._wrong(
                "retry_topics= needs topics: retry topics are named after them.",
                "Name the topics, or leave retry_topics= out.",
            )
        if self.retry_topics and self.start != "earliest":
            # A record may be in a retry topic before the group has committed an offset of that topic.
            raise self._wrong(
                f"start={self.start!r} could skip records that wait in a new retry topic.",
                'With retry_topics= use start="earliest".',
            )

    @property
    def kind(self) -> str:
        """The word for it in messages."""
        return "handler"

    @property
    def source(self) -> str:
        """What it consumes, as text for messages."""
        if self.pattern is not None:
            return f"topics like {self.pattern}"
        return ", ".join(self.topics or (f"{topic}[{partition}]" for topic, partition in self.partitions))

    def consumes(self, topic: str) -> bool:
        """Whether it consumes this topic, or some partition of it."""
        if self.pattern is not None:
            return matches(self.pattern, topic)
        return topic in self.consumed_topics or any(topic == named for named, _ in self.partitions)

    @property
    def output_topics(self) -> tuple[str, ...]:
        """The topics of ``to``. An ``Out`` may name others."""
        if self.to is None:
            return ()
        return self.to if isinstance(self.to, tuple) else (self.to,)

    @property
    def default_topic(self) -> str | None:
        """The topic for outputs that do not name one."""
        return next(iter(self.output_topics), None)

    @property
    def written_topics(self) -> tuple[str, ...]:
        """All topics that it declares to write to: for outputs, dead letters and retries."""
        return (*self.output_topics, *filter(None, [self.dead_letter]), *self.delayed)

    @property
    def declares_outputs(self) -> bool:
        """Whether its options or its return hint say that it has outputs. Without a hint it may still return some."""
        return self.to is not None or self.signature.has_several_outputs or Out in self.signature.output_types

    def check_output_topic(self, topic: str) -> None:
        """Raise a HandlerBug if its outputs cannot go to this topic, which an ``Out`` names."""
        problem = output_topic_problem(self, topic)
        if problem is not None:
            raise HandlerBug(f"Out(to={topic!r}): {problem}.")

    @property
    def largest_concurrency(self) -> int:
        """How many records or batches of it run at once at most."""
        return largest_concurrency(self.concurrency, self.max_concurrency, self.workers)

    @property
    def is_shared(self) -> bool:
        return self.mode == "share"

    @property
    def is_at_most_once(self) -> bool:
        return self.delivery == "at-most-once"

    @property
    def is_exactly_once(self) -> bool:
        return self.delivery == "exactly-once"

    @property
    def is_dry_run(self) -> bool:
        """Whether the engines write and commit nothing."""
        return self.replay_range is not None and self.replay_range.dry_run

    @property
    def cooperates(self) -> bool:
        """Whether a rebalance revokes only the partitions that move. Eager assignors revoke all partitions."""
        if self.is_self_managed:
            return all(map(cooperates, self.assignors))
        return not self.partitions and (self.protocol == "consumer" or self.assignor in (None, "cooperative-sticky"))

    @property
    def is_self_managed(self) -> bool:
        """Whether its assignor is not one of the Kafka client, so that Penstock manages the membership itself."""
        return self.assignor is not None and self.assignor not in KNOWN_TO_CLIENT[self.protocol]

    @property
    def assignors(self) -> tuple[Assignor, ...]:
        """The assignors of a self-managed member, in the order in which it votes for them."""
        chosen = self.assignor if isinstance(self.assignor, tuple) else (self.assignor,)
        return tuple(assignor_named(each) if isinstance(each, str) else each for each in chosen if each is not None)

    def _check_fetching(self) -> None:
        check_start("start", self.start, self._wrong)
        if self.from_ is not None:
            check_start("from_", self.from_, self._wrong)
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

    def _check_numbers(self) -> None:
        counts = {
            "max_concurrency": self.max_concurrency,
            "max_in_flight": self.max_in_flight,
            "max_in_flight_bytes": self.max_in_flight_bytes,
            "members": self.members,
            "batch": 1 if self.batch is None else self.batch,
            "commit_after": 1 if self.commit_after is None else self.commit_after,
            "max_micro_batch": self.max_micro_batch,
        }
        for option, value in counts.items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise self._wrong(f"{option}={value!r} is not a count.", "Use a whole number of at least 1.")
        if self.max_in_flight < _MIN_IN_FLIGHT:
            raise self._wrong(f"max_in_flight={self.max_in_flight} is too small.", "Use 2 or more.")
        if self.timeout is not None and self.timeout <= 0:
            raise self._wrong(
                f"timeout={self.timeout:g} leaves no time for an attempt.", 'Use a duration such as "30s".'
            )
        if self.commit_every <= 0:
            raise self._wrong(
                f"commit_every={self.commit_every:g} is not positive.",
                'Use a duration such as "100ms", or commit="record" to commit as soon as a record is finished.',
            )
        if self.micro_batch <= 0:
            raise self._wrong(f"micro_batch={self.micro_batch:g} is not positive.", 'Use a duration such as "10s".')
        if not isinstance(self.honor_times, bool):
            raise self._wrong(f"honor_times={self.honor_times!r} is not a bool.", "Use True or False.")
        if not isinstance(self.restart, Retry):
            raise self._wrong(f"restart={self.restart!r} is not a Retry.", "Use a Retry such as Retry(attempts=10).")
        if self.batch is not None and self.batch > self.max_in_flight:
            raise self._wrong(
                f"batch={self.batch} is larger than max_in_flight={self.max_in_flight}.", "Raise max_in_flight."
            )

    def _check_routing(self) -> None:
        if self.when is not None:
            read_when(self.when, self._wrong)
        check_otherwise(
            self.otherwise, is_conditional=self.is_conditional, dead_letter=self.dead_letter, wrong=self._wrong
        )

    def _wrong(self, problem: str, hint: str) -> ConfigError:
        return ConfigError(f"Handler {self.name}: {problem}", hint=hint)
