"""The app: what a user's module declares and ``penstock run`` runs."""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from penstock.app.control import Control, PartitionProgress
from penstock.app.fetching import OnPartitions, Protocol, Start, is_offset, is_place
from penstock.app.handler import CommitMode, Handler, WorkerKind
from penstock.core.breaker import Breaker
from penstock.core.duration import Duration, seconds
from penstock.core.lanes import Order
from penstock.core.record import TopicPartition
from penstock.core.retry import DEFAULT_RETRY, RetryPolicy
from penstock.core.retry_topic import checked_durations
from penstock.core.settings import client_settings, hide_passwords
from penstock.errors import ConfigError, StateError

F = TypeVar("F", bound=Callable[..., Any])

# Enough for handlers that wait for a database or a service, and few enough threads not to be felt.
_CONCURRENCY = 32

# For all apps, as they travel to Spark's workers, and a lock of their own could not.
_ATTACHING = threading.Lock()


def _default_concurrency(workers: WorkerKind) -> int:
    return os.cpu_count() or 1 if workers == "process" else _CONCURRENCY


class App:
    """A named set of handlers.

    Args:
        name: Also the consumer group of its handlers, unless they name another.
        brokers: Bootstrap servers, such as ``"localhost:9092"``. Without it, ``penstock run`` takes ``--brokers``,
            ``PENSTOCK_BROKERS`` or the embedded Kafka of ``penstock up``.
        settings: Client settings by their Kafka names, for every handler.
        create_topics: Create missing output, dead-letter and retry topics, with as many partitions as the source.
            Without it a missing one is an error. Source topics are never created.
    """

    def __init__(
        self,
        name: str,
        *,
        brokers: str | None = None,
        settings: Mapping[str, Any] | None = None,
        create_topics: bool = True,
    ) -> None:
        if not isinstance(name, str) or not name.strip():
            raise ConfigError(f"App({name!r}) has no name.", hint="The name is the consumer group; give it a word.")
        self.name = name
        self.brokers = brokers
        self.settings = client_settings(settings or {})
        self.create_topics = create_topics
        self._handlers: list[Handler] = []
        self._control: Control | None = None
        # What each handler was declared with, but for settings: what is not given is told from what is.
        self._declared: list[Mapping[str, Any]] = []

    def __repr__(self) -> str:
        names = ", ".join(handler.name for handler in self._handlers)
        return f"App({self.name!r}, brokers={hide_passwords(repr(self.brokers))}, handlers=[{names}])"

    @property
    def handlers(self) -> tuple[Handler, ...]:
        return tuple(self._handlers)

    def consume(
        self,
        *topics: str,
        pattern: str | None = None,
        partitions: Sequence[TopicPartition] = (),
        group: str | None = None,
        to: str | None = None,
        dead_letter: str | None = None,
        retry: RetryPolicy | None = None,
        retry_topics: Sequence[Duration] = (),
        breaker: Breaker | None = None,
        order: Order = "partition",
        null_keys_in_order: bool = False,
        concurrency: int | None = None,
        workers: WorkerKind = "auto",
        batch: int | None = None,
        linger: Duration = "50ms",
        members: int = 1,
        protocol: Protocol = "classic",
        assignor: str | None = None,
        static_id: str | None = None,
        rack: str | None = None,
        start: Start = "earliest",
        from_: Start | None = None,
        on_assigned: OnPartitions | None = None,
        on_revoked: OnPartitions | None = None,
        on_lost: OnPartitions | None = None,
        commit: CommitMode = "auto",
        commit_every: Duration = "1s",
        commit_after: int | None = None,
        max_in_flight: int = 10_000,
        drain_timeout: Duration = "30s",
        settings: Mapping[str, Any] | None = None,
    ) -> Callable[[F], F]:
        """Declare a function as the handler of these topics; the function itself stays as it is.

        Args:
            topics: The topics to consume.
            pattern: Instead of topics, a regular expression over whole names; topics that are created later join by
                themselves.
            partitions: Instead of topics, partitions such as ``[("orders", 0)]``. The group assigns nothing then, but
                still keeps the offsets.
            group: The consumer group; the app's name by default.
            to: The topic for what the handler returns, under the key of the record it came from.
            dead_letter: The topic for records that fail for good. Without it, such a record stops the app.
            retry: When to attempt a failed record again: a ``Retry``, or a mapping from types of errors to Retries, of
                which the nearest class of the error counts. ``Retry()`` by default, and for what is not listed.
            retry_topics: Durations of topics such as ``orders.retry.10m``. A wait that reaches the shortest is spent
                in the longest that is not above it; the record then holds up nobody, and memory holds nothing.
            breaker: Stop the app when nearly all records go to the dead letters; off by default.
            order: What runs one at a time and in order: a ``"partition"``, a ``"key"`` (so that many keys of one
                partition run at once), or nothing (``"none"``).
            null_keys_in_order: With ``order="key"``, whether records without a key keep their order too.
            concurrency: How many records (with ``batch``: batches) may be in progress at once, whatever the number of
                partitions; 32 by default, and one for each core with ``workers="process"``.
            workers: ``"process"`` runs a ``def`` handler in processes, for handlers that compute rather than wait. By
                default ``def`` runs on threads and ``async def`` on one event loop.
            batch: Hand over lists of up to so many records, and take one outcome for each: the handler returns None
                for "all done", or a list with a result, None or an exception for each record.
            linger: How long an incomplete batch waits for more records.
            members: How many members of the group to run in this process, each with its own ``concurrency``.
            protocol: The group protocol: ``"classic"``, or ``"consumer"``, the new one of Kafka 4, where the broker
                assigns.
            assignor: Who gets which partition: ``"cooperative-sticky"`` (the default), ``"range"`` or
                ``"roundrobin"``; with ``protocol="consumer"`` ``"uniform"`` or ``"range"``.
            static_id: A name that this member keeps over restarts: one that is back within the session timeout gets
                its partitions back, and the others notice nothing. With ``members`` each gets ``-0``, ``-1`` and so on.
            rack: Where this runs; replicas in the same rack are read where the brokers allow it.
            start: Where to start a partition for which the group has no committed offset, or one that the log has no
                more: ``"earliest"``, ``"latest"``, a datetime with a time zone, or offsets (``{("orders", 0): 42}``;
                partitions that are not named start at the earliest).
            from_: Start there whatever the group has committed, when a partition is first assigned in this run.
                Offsets leave alone the partitions that they do not name.
            on_assigned: Called with a list of ``(topic, partition)`` before the first record of them is handled.
            on_revoked: Called when their records are through and committed, before others get them.
            on_lost: Called when others may have them already. All three are plain functions, called on a thread that
                fetches: the member waits for them. One that raises stops the app.
            commit: ``"auto"`` commits every ``commit_every``; ``"record"`` as soon as a record is finished;
                ``"manual"`` takes a record for finished only when ``record.ack()`` is called, during the handler's call
                or any time after it.
            commit_every: How often finished work is committed.
            commit_after: Commit also after so many finished records.
            max_in_flight: How many records may be delivered and unfinished; past it, fetching pauses.
            drain_timeout: How long a stop or a rebalance waits for records in progress.
            settings: Client settings by their Kafka names, over the app's.
        """
        declared = {name: value for name, value in locals().items() if name not in ("self", "settings")}

        def declare(function: F) -> F:
            self._add(
                Handler(
                    name=getattr(function, "__name__", repr(function)),
                    function=function,
                    topics=tuple(topics),
                    pattern=pattern,
                    partitions=tuple(partitions),
                    group=group or self.name,
                    to=to,
                    dead_letter=dead_letter,
                    retry=DEFAULT_RETRY if retry is None else retry,
                    retry_topics=checked_durations(retry_topics),
                    breaker=breaker,
                    order=order,
                    null_keys_in_order=null_keys_in_order,
                    concurrency=_default_concurrency(workers) if concurrency is None else concurrency,
                    workers=workers,
                    batch=batch,
                    linger=seconds(linger, name="linger"),
                    members=members,
                    protocol=protocol,
                    assignor=assignor,
                    static_id=static_id,
                    rack=rack,
                    start=start,
                    from_=from_,
                    on_assigned=on_assigned,
                    on_revoked=on_revoked,
                    on_lost=on_lost,
                    commit=commit,
                    commit_every=seconds(commit_every, name="commit_every"),
                    commit_after=commit_after,
                    max_in_flight=max_in_flight,
                    drain_timeout=seconds(drain_timeout, name="drain_timeout"),
                    settings={**self.settings, **(settings or {})},
                )
            )
            self._declared.append(declared)
            return function

        return declare

    @property
    def declarations(self) -> tuple[tuple[Handler, Mapping[str, Any]], ...]:
        """Each handler with what was given for it to ``consume``, but for settings."""
        return tuple(zip(self._handlers, self._declared, strict=True))

    def variant(self, name: str, rename: Callable[[Handler], Mapping[str, Any]]) -> "App":
        """The same handlers under another name, with the options that ``rename`` gives for each replaced."""
        twin = App(name, brokers=self.brokers, settings=self.settings, create_topics=self.create_topics)
        for handler, declared in self.declarations:
            changes = rename(handler)
            twin._add(replace(handler, **changes))
            twin._declared.append({**declared, **changes})
        return twin

    def progress(self) -> list[PartitionProgress]:
        """How far each owned partition is. From any thread, while the local engine runs the app in this process."""
        return self._running().progress()

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """With ``commit="manual"``: all that was handled below these offsets is finished; it is committed at once.

        From any thread, while the local engine runs the app.
        """
        for place, offset in offsets.items():
            if not is_place(place) or not is_offset(offset):
                raise ConfigError(
                    f"app.commit({{{place!r}: {offset!r}}}) does not name an offset of a partition.",
                    hint='Write app.commit({("orders", 0): 42}): all below 42 is finished.',
                )
        self._running().commit(offsets)

    @contextmanager
    def controlled_by(self, control: Control) -> Iterator[None]:
        """An engine's side: inside the block it answers for this app, and no other engine may."""
        with _ATTACHING:
            if self._control is not None:
                raise StateError(
                    f"App {self.name!r} is running already in this process.",
                    hint="Stop it first. For more members of its group, declare members=N or start more processes.",
                )
            self._control = control
        try:
            yield
        finally:
            self._control = None

    def _running(self) -> Control:
        control = self._control
        if control is None:
            raise StateError(
                f"App {self.name!r} is not running on the local engine in this process.",
                hint="Ask while it runs, for example in a handler.",
            )
        return control

    def _add(self, handler: Handler) -> None:
        for other in self._handlers:
            if other.group == handler.group:
                self._check_beside(other, handler)
        self._handlers.append(handler)

    @staticmethod
    def _check_beside(other: Handler, handler: Handler) -> None:
        """Two handlers of one group must leave each other's records and memberships alone."""
        hint = 'Give one of them its own group: @app.consume(..., group="...").'
        # Two patterns are compared by what they match, when the app starts.
        shared = {topic for topic in handler.consumed_topics if other.consumes(topic)}
        shared |= {topic for topic in other.consumed_topics if handler.consumes(topic)}
        if shared:
            raise ConfigError(
                f"Handlers {other.name} and {handler.name} both consume {min(shared)!r} in group "
                f"{handler.group!r}, so each would get only a part of it.",
                hint=hint,
            )
        twice = set(handler.partitions) & set(other.partitions)
        if twice or bool(handler.partitions) != bool(other.partitions):
            what = f"{min(twice)} twice" if twice else "named partitions beside what the group assigns"
            raise ConfigError(
                f"Handlers {other.name} and {handler.name} of group {handler.group!r} consume {what}, "
                "and would overwrite each other's offsets.",
                hint=hint,
            )
        if handler.static_id is not None and handler.static_id == other.static_id:
            raise ConfigError(
                f"Handlers {other.name} and {handler.name} of group {handler.group!r} both have the static_id "
                f"{handler.static_id!r}, so each would throw the other out.",
                hint="Give each its own.",
            )
