"""The app: what a user's module declares and ``penstock run`` runs."""

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Literal, Never, TypeVar

from penstock.app.conflicts import check_handlers, check_pipeline
from penstock.app.consume_options import OnPartitions, Protocol, Start, is_offset, is_place, one_or_several
from penstock.app.guarantees import Delivery, Mode
from penstock.app.handler import CommitMode, Handler, Scale, WorkerKind
from penstock.app.offset_store import OffsetStore
from penstock.app.pipelines import OutputMode, Pipeline, Sink, Source, checked_outputs, checked_sources
from penstock.app.run_control import Control, ControlSlot, PartitionProgress
from penstock.app.signature import function_name
from penstock.assign import Assignor
from penstock.core.failures.breaker import Breaker
from penstock.core.failures.restarts import DEFAULT_RESTART
from penstock.core.failures.retry import DEFAULT_RETRY, NO_RETRY, Retry, RetryPolicy
from penstock.core.failures.retry_topic import checked_durations
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.in_flight import DEFAULT_BYTES
from penstock.core.scheduling.lanes import Order
from penstock.core.settings import Registry, client_settings, hide_passwords, registry_of
from penstock.core.text.durations import Duration, seconds
from penstock.core.text.suggestions import suggestion
from penstock.errors import ConfigError, StateError

F = TypeVar("F", bound=Callable[..., Any])

# Enough for handlers that wait for a database or a service, and few enough threads not to be felt.
_CONCURRENCY = 32


def _default_concurrency(workers: WorkerKind, scale: Scale) -> int:
    if scale == "cpu":  # where each task has a core to itself, and no use for more than one record at a time
        return 1
    return os.cpu_count() or 1 if workers == "process" else _CONCURRENCY


_APP_OPTIONS = ("brokers", "settings", "registry", "create_topics")

# By delivery: with exactly-once, readers of outputs wait for the commit.
_COMMIT_EVERY: dict[str, Duration] = {"at-least-once": "1s", "exactly-once": "100ms"}


def _default_retry(delivery: Delivery) -> Retry:
    return NO_RETRY if delivery == "at-most-once" else DEFAULT_RETRY


class App:
    """A named set of handlers.

    Args:
        name: Also the consumer group of its handlers, unless they name another.
        brokers: Bootstrap servers, such as ``"localhost:9092"``. Without it, ``penstock run`` takes ``--brokers``,
            ``PENSTOCK_BROKERS`` or the embedded Kafka of ``penstock up``.
        settings: Client settings by their Kafka names, for every handler.
        registry: The schema registry for ``Avro``, ``JsonSchema`` and ``Protobuf``: a URL, or a mapping of settings of
            its client, such as ``{"url": ..., "basic.auth.user.info": "user:password"}``.
        create_topics: Create missing output, dead-letter and retry topics, with as many partitions as the source.
            Without it a missing one is an error. Source topics are never created.
    """

    def __init__(
        self,
        name: str,
        *,
        brokers: str | None = None,
        settings: Mapping[str, Any] | None = None,
        registry: Registry | str | Mapping[str, Any] | None = None,
        create_topics: bool = True,
        **_unknown: Never,
    ) -> None:
        if not isinstance(name, str) or not name.strip():
            raise ConfigError(f"App({name!r}) has no name.", hint="The name is the consumer group; give it a word.")
        _refuse_unknown(_unknown, App)
        self.name = name
        self.brokers = brokers
        self.settings = client_settings(settings or {})
        self.registry = registry_of(registry)
        self.create_topics = create_topics
        # What the code gave, here and below: `penstock run` puts what comes from outside over it, for each run.
        self._declared_options = {name: getattr(self, name) for name in _APP_OPTIONS}
        self._handlers: list[Handler] = []
        self._declared: list[Mapping[str, Any]] = []
        self._pipelines: list[Pipeline] = []
        self._declared_pipelines: list[Mapping[str, Any]] = []
        self._slot = ControlSlot()

    def __repr__(self) -> str:
        names = ", ".join([*(each.name for each in self._handlers), *(each.name for each in self._pipelines)])
        return f"App({self.name!r}, brokers={hide_passwords(repr(self.brokers))}, handlers=[{names}])"

    @property
    def handlers(self) -> tuple[Handler, ...]:
        return tuple(self._handlers)

    @property
    def pipelines(self) -> tuple[Pipeline, ...]:
        return tuple(self._pipelines)

    @property
    def packages(self) -> tuple[str, ...]:
        """What Spark needs besides Kafka for the sources and sinks of its pipelines."""
        parts = (part for each in self._pipelines for part in (*each.sources.values(), *each.sinks))
        return tuple(dict.fromkeys(name for part in parts for name in part.packages))

    def consume(
        self,
        *topics: str,
        pattern: str | None = None,
        partitions: Sequence[TopicPartition] = (),
        group: str | None = None,
        value: Any = None,
        key: Any = None,
        headers: Any = None,
        to: str | None = None,
        to_value: Any = None,
        dead_letter: str | None = None,
        retry: RetryPolicy | None = None,
        retry_topics: Sequence[Duration] = (),
        breaker: Breaker | None = None,
        mode: Mode = "group",
        delivery: Delivery = "at-least-once",
        order: Order = "partition",
        null_keys_in_order: bool = False,
        concurrency: int | None = None,
        workers: WorkerKind = "auto",
        scale: Scale = "partition",
        batch: int | None = None,
        linger: Duration = "50ms",
        members: int = 1,
        protocol: Protocol = "classic",
        assignor: str | Assignor | Sequence[str | Assignor] | None = None,
        static_id: str | None = None,
        rack: str | None = None,
        start: Start = "earliest",
        from_: Start | None = None,
        on_assigned: OnPartitions | None = None,
        on_revoked: OnPartitions | None = None,
        on_lost: OnPartitions | None = None,
        commit: CommitMode = "auto",
        commit_every: Duration | None = None,
        commit_after: int | None = None,
        max_in_flight: int = 10_000,
        max_in_flight_bytes: int = DEFAULT_BYTES,
        drain_timeout: Duration = "30s",
        micro_batch: Duration = "10s",
        max_micro_batch: int = 1_000_000,
        restart: Retry = DEFAULT_RESTART,
        tracing: bool = False,
        offsets: str | OffsetStore | None = None,
        settings: Mapping[str, Any] | None = None,
        **_unknown: Never,
    ) -> Callable[[F], F]:
        """Declare a function as the handler of these topics; the function itself stays as it is.

        Args:
            topics: The topics to consume.
            pattern: Instead of topics, a regular expression over whole names; topics that are created later join by
                themselves.
            partitions: Instead of topics, partitions such as ``[("orders", 0)]``. The group assigns nothing then, but
                still keeps the offsets.
            group: The consumer group; the app's name by default.
            value: How values are decoded, if not by the type hint: a type, ``Avro(...)``, ``JsonSchema(...)``,
                ``Protobuf(...)``, a function of bytes, or an object with ``decode``.
            key: The same for keys, which a parameter named ``key`` gets (with ``batch``: ``keys``).
            headers: The same for the values of headers, or a mapping from names to decoders; a parameter named
                ``headers`` gets them as a dict.
            to: The topic for what the handler returns, under the key of the record it came from.
            to_value: How that is encoded, if not by its type: ``Avro(...)``, ``JsonSchema(...)``, ``Protobuf(...)``, a
                function to bytes, or an object with ``encode``.
            dead_letter: The topic for records that fail for good. Without it, such a record stops the app.
            retry: When to attempt a failed record again: a ``Retry``, or a mapping from types of errors to Retries, of
                which the nearest class of the error counts. ``Retry()`` by default, and for what is not listed.
            retry_topics: Durations of topics such as ``orders.retry.10m``. A wait that reaches the shortest is spent
                in the longest that is not above it; the record then holds up nobody, and memory holds nothing.
            breaker: Stop the app when nearly all records go to the dead letters; off by default.
            mode: ``"group"``, or ``"share"``: a share group of Kafka 4.2 or newer, a queue whose consumers may
                outnumber the partitions, without any order. A preview, as it is in the client.
            delivery: ``"at-least-once"``; ``"exactly-once"``: whoever reads with ``isolation.level=read_committed``
                finds each output and each dead letter once, whatever failed; ``"at-most-once"``: each record is
                committed before it is handled, so that nothing is handled twice, and what a crash finds is lost.
            order: What runs one at a time and in order: a ``"partition"``, a ``"key"`` (so that many keys of one
                partition run at once), or nothing (``"none"``).
            null_keys_in_order: With ``order="key"``, whether records without a key keep their order too.
            concurrency: How many records (with ``batch``: batches) may be in progress at once, whatever the number of
                partitions; 32 by default, one for each core with ``workers="process"``, one with ``scale="cpu"``. On
                Spark it counts for each task, and so does ``max_in_flight``.
            workers: ``"process"`` runs a ``def`` handler in processes, for handlers that compute rather than wait. By
                default ``def`` runs on threads and ``async def`` on one event loop.
            scale: On Spark, what the work is divided by: ``"partition"``, one task for each, or ``"cpu"``, which deals
                the keys of all partitions out to all cores, for handlers that compute. It takes a shuffle of each
                batch, and goes with ``order="key"`` or ``"none"``.
            batch: Hand over lists of up to so many records, and take one outcome for each: the handler returns None
                for "all done", or a list with a result, None or an exception for each record.
            linger: How long an incomplete batch waits for more records.
            members: How many members of the group to run in this process, each with its own ``concurrency``.
            protocol: The group protocol: ``"classic"``, or ``"consumer"``, the new one of Kafka 4, where the broker
                assigns.
            assignor: Who gets which partition: ``"cooperative-sticky"`` (the default), ``"range"`` or
                ``"roundrobin"``; with ``protocol="consumer"`` ``"uniform"`` or ``"range"``. Any other of
                ``penstock.assign``, by name or as an object, one of your own, or a list of them in the order in which
                this member votes for them, makes it an open member: Penstock itself speaks to the coordinator.
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
            commit_every: How often finished work is committed: every second, and with exactly-once every 100 ms.
            commit_after: Commit also after so many finished records.
            max_in_flight: How many records may be delivered and unfinished; past it, fetching pauses.
            max_in_flight_bytes: How many bytes the values of these records may have, together with what the client has
                fetched ahead. A value that is larger than that gets through alone. Only on the local engine.
            drain_timeout: How long a stop or a rebalance waits for records in progress.
            micro_batch: On Spark, how long a batch should take; its size follows from that, starting with
                ``max_in_flight`` records.
            max_micro_batch: On Spark, how many records a batch may have at most.
            restart: On Spark, when a query that failed starts again; a finished batch begins the count anew. Its last
                attempt stops the app. The local engine goes on by itself and needs none of these three.
            tracing: A span of OpenTelemetry for each attempt, which continues the trace in the record's headers; what
                comes of the record carries it on.
            offsets: Keep progress there rather than in Kafka, whose offsets follow: ``"postgresql://..."``,
                ``"sqlite:///path"``, ``"file:path"``, or an object of ``penstock.stores.OffsetStore``. With a database
                a parameter named ``tx`` gets its open transaction: what the handler writes in it and that its record
                is finished are committed together.
            settings: Client settings by their Kafka names, over the app's.
        """
        declared = {name: value for name, value in locals().items() if name not in ("self", "settings", "_unknown")}
        _refuse_unknown(_unknown, App.consume)

        def declare(function: F) -> F:
            self._add(
                Handler(
                    app=self.name,
                    name=function_name(function),
                    function=function,
                    topics=tuple(topics),
                    pattern=pattern,
                    partitions=tuple(partitions),
                    group=group or self.name,
                    value=value,
                    key=key,
                    headers=headers,
                    registry=self.registry,
                    to=to,
                    to_value=to_value,
                    dead_letter=dead_letter,
                    retry=_default_retry(delivery) if retry is None else retry,
                    retry_topics=checked_durations(retry_topics),
                    breaker=breaker,
                    mode=mode,
                    delivery=delivery,
                    order=order,
                    null_keys_in_order=null_keys_in_order,
                    concurrency=_default_concurrency(workers, scale) if concurrency is None else concurrency,
                    workers=workers,
                    scale=scale,
                    batch=batch,
                    linger=seconds(linger, name="linger"),
                    members=members,
                    protocol=protocol,
                    assignor=one_or_several(assignor),
                    static_id=static_id,
                    rack=rack,
                    start=start,
                    from_=from_,
                    on_assigned=on_assigned,
                    on_revoked=on_revoked,
                    on_lost=on_lost,
                    commit=commit,
                    commit_every=seconds(
                        _COMMIT_EVERY.get(delivery, "1s") if commit_every is None else commit_every,
                        name="commit_every",
                    ),
                    commit_after=commit_after,
                    max_in_flight=max_in_flight,
                    max_in_flight_bytes=max_in_flight_bytes,
                    drain_timeout=seconds(drain_timeout, name="drain_timeout"),
                    micro_batch=seconds(micro_batch, name="micro_batch"),
                    max_micro_batch=max_micro_batch,
                    restart=restart,
                    tracing=tracing,
                    offsets=offsets,
                    settings={**self.settings, **(settings or {})},
                )
            )
            own = {**self._declared_options["settings"], **(settings or {})}
            self._declared.append({**declared, "settings": client_settings(own)})
            return function

        return declare

    def pipeline(
        self,
        *topics: str,
        to: str | Sink | Sequence[str | Sink] | Mapping[str, str | Sink | Sequence[str | Sink]],
        value: Any = bytes,
        key: type = bytes,
        sources: Mapping[str, str | Sequence[str] | Source] | None = None,
        group: str | None = None,
        dead_letter: str | None = None,
        start: Literal["earliest", "latest"] = "earliest",
        output_mode: OutputMode = "append",
        delivery: Delivery = "at-least-once",
        trigger: Duration = "200ms",
        micro_batch: Duration = "10s",
        max_micro_batch: int = 1_000_000,
        restart: Retry = DEFAULT_RESTART,
        drain_timeout: Duration = "30s",
        settings: Mapping[str, Any] | None = None,
        **_unknown: Never,
    ) -> Callable[[F], F]:
        """Declare a function over Spark DataFrames; ``penstock run --engine spark`` keeps it running.

        The function is called when the app starts. It gets a streaming DataFrame for each source and returns one, or a
        dict of them: what it says in between is Spark's to do, record by record without Python.

        Args:
            topics: The topics to read, as one DataFrame.
            to: Where rows go: a topic's name, a ``Topic``, ``Table``, ``Jdbc`` or ``Console``; a list of them for the
                same rows in each; a dict of them for a function that returns a dict.
            value: What the values of the topics are; ``Source`` says what can be told.
            key: ``bytes``, or ``str`` for keys of text.
            sources: Instead of topics: a ``Source`` for each parameter of the function.
            group: The consumer group that keeps the offsets; the app's name by default.
            dead_letter: The topic for records whose value is not what ``value`` says. Without it, such a record stops
                the pipeline.
            start: Where to start where the group has no committed offset.
            output_mode: What Spark hands to the sinks of an aggregate: ``"append"`` what is final, ``"update"`` what
                changed in a batch, ``"complete"`` everything.
            delivery: ``"at-least-once"``, of which each sink says what it makes; or ``"exactly-once"`` into a topic,
                for rows that stay in the task that reads them.
            trigger: How long to wait for more before the next batch begins.
            micro_batch: How long a batch should take; its size follows from that.
            max_micro_batch: How many records a batch may have at most.
            restart: When a query that failed starts again; a finished batch begins the count anew.
            drain_timeout: How long a stop waits for the batch that is running.
            settings: Client settings by their Kafka names, over the app's.
        """
        declared = {name: value for name, value in locals().items() if name not in ("self", "_unknown")}
        _refuse_unknown(_unknown, App.pipeline)

        def declare(function: F) -> F:
            self._add_pipeline(
                Pipeline(
                    name=function_name(function),
                    function=function,
                    sources=checked_sources(topics, sources, value=value, key=key, function=function),
                    outputs=checked_outputs(to),
                    group=group or self.name,
                    dead_letter=dead_letter,
                    start=start,
                    output_mode=output_mode,
                    delivery=delivery,
                    trigger=seconds(trigger, name="trigger"),
                    micro_batch=seconds(micro_batch, name="micro_batch"),
                    max_micro_batch=max_micro_batch,
                    restart=restart,
                    drain_timeout=seconds(drain_timeout, name="drain_timeout"),
                    settings={**self.settings, **(settings or {})},
                    registry=self.registry,
                )
            )
            self._declared_pipelines.append(declared)
            return function

        return declare

    def take_pipelines_of(self, other: "App") -> None:
        """Declare the other app's pipelines here too, over this app's settings."""
        for pipeline, declared in zip(other.pipelines, other._declared_pipelines, strict=True):  # noqa: SLF001 - its own kind
            options = dict(declared)
            self.pipeline(*options.pop("topics"), **options)(pipeline.function)

    def refuse_pipelines(self, *, where: str, hint: str) -> None:
        """Where there are no DataFrames, a pipeline would go unheard."""
        if self._pipelines:
            names = ", ".join(pipeline.name for pipeline in self._pipelines)
            raise ConfigError(
                f"App {self.name!r} has DataFrame pipelines ({names}), which {where} does not run.", hint=hint
            )

    @property
    def declared(self) -> Mapping[str, Any]:
        """What the code gave for the app itself, whatever it was configured with since."""
        return self._declared_options

    @property
    def declarations(self) -> tuple[tuple[Handler, Mapping[str, Any]], ...]:
        """Each handler with what the code gave for it to ``consume``, the app's settings included."""
        return tuple(zip(self._handlers, self._declared, strict=True))

    def become(self, configured: "App") -> None:
        """Run with the options, handlers and pipelines of this app, which was made from the declarations of this one.

        The app stays the object that the user's module holds, so that its handlers can ask it while it runs.
        """
        if self._slot.is_held:
            raise StateError(f"App {self.name!r} is running, so it cannot be configured.", hint="Stop it first.")
        for name in _APP_OPTIONS:
            setattr(self, name, getattr(configured, name))
        self._handlers = [*configured.handlers]
        self._pipelines = [*configured.pipelines]

    def variant(self, name: str, rename: Callable[[Handler], Mapping[str, Any]]) -> "App":
        """The same handlers under another name, with the options that ``rename`` gives for each replaced."""
        twin = App(
            name,
            brokers=self.brokers,
            settings=self.settings,
            registry=self.registry,
            create_topics=self.create_topics,
        )
        for handler, declared in self.declarations:
            changes = rename(handler)
            twin._add(replace(handler, **{"app": name, **changes}))
            twin._declared.append({**declared, **changes})
        twin.take_pipelines_of(self)
        return twin

    def progress(self) -> list[PartitionProgress]:
        """How far each owned partition is. From any thread, while the local engine runs the app in this process."""
        return self._slot.get(self.name).progress()

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
        self._slot.get(self.name).commit(offsets)

    def controlled_by(self, control: Control) -> AbstractContextManager[None]:
        """An engine's side: inside the block it answers for this app, and no other engine may."""
        return self._slot.held_by(control, self.name)

    def lend_to(self, control: Control) -> None:
        """The testing kit's side: it answers for this app until ``take_back``, or until another bench takes a turn."""
        self._slot.lend(control, self.name)

    def take_back(self, control: Control) -> None:
        self._slot.release(control)

    def _add(self, handler: Handler) -> None:
        for other in self._handlers:
            if other.group == handler.group:
                check_handlers(other, handler)
        for pipeline in self._pipelines:
            check_pipeline(pipeline, handler)
        self._handlers.append(handler)

    def _add_pipeline(self, pipeline: Pipeline) -> None:
        for handler in self._handlers:
            check_pipeline(pipeline, handler)
        for other in self._pipelines:
            check_pipeline(pipeline, other)
        self._pipelines.append(pipeline)


def _refuse_unknown(given: Mapping[str, Any], function: Callable[..., Any]) -> None:
    """What Python itself would refuse, but without a word on which name was meant."""
    for name in given:
        known = [
            each.name for each in inspect.signature(function).parameters.values() if each.kind is each.KEYWORD_ONLY
        ]
        what = "App" if isinstance(function, type) else f"@app.{function.__name__}"
        raise ConfigError(f"{what} has no option {name!r}.", hint=suggestion(name, known))
