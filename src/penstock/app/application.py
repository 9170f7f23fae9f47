"""The app: what a user's module declares and ``penstock run`` runs."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from penstock.app.handler import CommitMode, Handler, Start, WorkerKind
from penstock.core.breaker import Breaker
from penstock.core.duration import Duration, seconds
from penstock.core.lanes import Order
from penstock.core.retry import DEFAULT_RETRY, RetryPolicy
from penstock.core.retry_topic import checked_durations
from penstock.core.settings import client_settings, hide_passwords
from penstock.errors import ConfigError

F = TypeVar("F", bound=Callable[..., Any])

# Enough for handlers that wait for a database or a service, and few enough threads not to be felt.
_CONCURRENCY = 32


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
        start: Start = "earliest",
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
            start: Where to start a partition for which the group has no committed offset.
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
                    start=start,
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

    def _add(self, handler: Handler) -> None:
        for other in self._handlers:
            shared = set(handler.consumed_topics) & set(other.consumed_topics)
            if shared and other.group == handler.group:
                raise ConfigError(
                    f"Handlers {other.name} and {handler.name} both consume {min(shared)!r} in group "
                    f"{handler.group!r}, so each would get only a part of it.",
                    hint='Give one of them its own group: @app.consume(..., group="...").',
                )
        self._handlers.append(handler)
