"""The bench: runs an app on a broker in memory, step by step, as a test asks for it."""

import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, TypeVar, overload

from penstock.app import App, Handler, refuse_unsupported
from penstock.core.records.record import Record, TopicPartition
from penstock.core.records.time_headers import time_headers
from penstock.core.reports.events import Event
from penstock.core.settings import Registry, registry_of
from penstock.core.text.durations import Duration, seconds
from penstock.errors import CallbackError, ConfigError
from penstock.serde import decoder_for, encode
from penstock.testing.bench_hooks import BenchHooks
from penstock.testing.bench_process import Process
from penstock.testing.bench_resources import BenchResources
from penstock.testing.clock import Clock
from penstock.testing.dead_letter_view import DeadLetter, read_letter
from penstock.testing.decoded_outputs import reader_of_outputs
from penstock.testing.faults import Faults
from penstock.testing.hand_driven_loop import HandDrivenLoop
from penstock.testing.memory_broker import Broker
from penstock.testing.world import World

T = TypeVar("T")
E = TypeVar("E", bound=Event)

Headers = Mapping[str, bytes | str | None] | Iterable[tuple[str, bytes | str | None]]

_START = datetime(2025, 1, 1, tzinfo=UTC)


class ProcessDied(BaseException):
    """``crash`` raises it inside a handler, the bench catches it. A BaseException, so that no handler catches it."""


class Bench:
    """Runs an app on the real engine, with a broker in memory and a clock that only your test moves.

    Time passes only in ``advance`` (and while ``rebalance`` and ``stop`` wait for records in progress). There are no
    threads, no network and no sleeps, so a test always takes the same course. Retries have no jitter.

    ``def`` handlers run to their end, one after the other. ``async def`` handlers run concurrently on an event loop
    with the bench's time: a handler that sleeps wakes when the clock gets there, and a handler that awaits an
    ``asyncio.Event`` of your test is in progress until your test sets it. Handlers with ``workers="process"`` run in
    the test's own process.

    The app starts with the first ``run_until_idle`` or ``advance``. After ``stop``, ``crash`` or an error, the next of
    these calls starts it again, at the offsets that its groups have committed.

    Args:
        app: The app, as ``penstock run`` would run it.
        partitions: How many partitions each topic has; or, by topic name, how many this topic has (others have one).
        now: The time at the start.
        registry: A schema registry to use instead of the app's; ``"mock://any-name"`` is one in memory.
        resources: Values to use instead of resources of the app, by name: ``Bench(app, db=fake)``.
    """

    def __init__(
        self,
        app: App,
        *,
        partitions: int | Mapping[str, int] = 1,
        now: datetime = _START,
        registry: Registry | str | None = None,
        **resources: Any,
    ) -> None:
        app.refuse_pipelines(where="the testing kit", hint="Test their functions on DataFrames of your own.")
        if not app.handlers:
            raise ConfigError(f"App {app.name!r} has no handlers.", hint='Declare one with @app.consume("topic").')
        for handler in app.handlers:
            refuse_unsupported(handler, "testing")
        self._app = self._users_app = app
        if registry is not None:
            chosen = registry_of(registry)
            self._app = app.variant(app.name, lambda _handler: {"registry": chosen})
        app.wired_handlers(resources)  # raises if a resource is missing
        self._given = resources
        self._clock = Clock(now)
        self._broker = Broker(self._clock.time_ms, partitions)
        self._faults = Faults()
        self._process: Process | None = None
        self._is_turning = False
        self.events: list[Event] = []
        """All events since the first start, including those of single records."""
        loop = HandDrivenLoop(self._clock.elapsed)
        self._world = World(self._broker, self._faults, self._clock, loop, self.events.append)
        # Tests do not close a bench, and an event loop that is never closed causes a warning.
        weakref.finalize(self, HandDrivenLoop.end, loop)

    @property
    def now(self) -> datetime:
        return self._clock.now()

    # Drive the app.

    def produce(
        self,
        topic: str,
        value: Any,
        *,
        key: bytes | str | None = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: datetime | None = None,
        not_before: datetime | Duration | None = None,
        expires: datetime | Duration | None = None,
    ) -> Record:
        """Write one record to a topic that the app consumes.

        Args:
            topic: The topic.
            value: Bytes are written as they are, text as UTF-8, None as a tombstone, and other values as the outputs of
                handlers are encoded.
            key: Chooses the partition, as in Kafka. Without a key, partitions take turns.
            headers: A mapping, or pairs if a name occurs twice.
            partition: Overrides the partition that the key chooses.
            timestamp: The default is the bench's time.
            not_before: As for ``Producer.send``, with the bench's time.
            expires: As for ``Producer.send``, with the bench's time.
        """
        self._require_source(topic, partition)
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        return self._broker.append(
            topic,
            _to_bytes(key),
            None if value is None else encode(value),
            (
                *((name, _to_bytes(text)) for name, text in pairs),
                *time_headers(not_before, expires, now=self._clock.time()),
            ),
            partition=partition,
            timestamp_ms=None if timestamp is None else round(timestamp.timestamp() * 1000),
        )

    def skip_offsets(self, topic: str, count: int = 1, *, partition: int = 0) -> None:
        """Leave a gap in the offsets, as transaction markers and compaction do."""
        self._require_source(topic, partition)
        self._broker.log((topic, partition)).skip(count)

    def run_until_idle(self) -> None:
        """Do everything that the app can do without time passing.

        Timers keep waiting: a retry, an incomplete batch for its ``linger``, a commit for its ``commit_every``. If the
        app stops with an error, this raises the error after the app has stopped.
        """
        with self._turn() as process:
            process.settle()

    def advance(self, duration: Duration) -> None:
        """Let time pass, and do what falls due in order. Before and after it, do what ``run_until_idle`` does.

        If a handler calls it, it only sets how long that handler takes.
        """
        span = seconds(duration, name="advance")
        if self._is_turning:
            self._clock.move_to(self._clock.elapsed() + span)
            return
        target = self._clock.elapsed() + span
        with self._turn() as process:
            process.advance(span)
        self._clock.move_to(target)

    def stop(self) -> None:
        """Stop the app cleanly: start no further record, wait for those in progress, and commit."""
        if self._process is None:
            return
        with self._turn() as process:
            process.stop("asked to")
            self._end()
            problem = self._close_process()
        if problem is not None:
            raise problem

    def crash(self) -> None:
        """Kill the app's process without a commit. If a handler calls it, the process dies inside that handler."""
        if self._is_turning:
            raise ProcessDied
        if self._process is not None:
            self._process.kill()
            self._end()

    def rebalance(self, *, lose: Iterable[TopicPartition] = ()) -> None:
        """Revoke every partition (the app drains and commits it), and assign it again.

        Partitions in ``lose``, such as ``("orders", 0)``, are lost instead: the app cannot drain or commit them.
        """
        lost = set(lose)
        tps = {tp for topic in self._sources() for tp in self._tps(topic)}
        if not lost <= tps:
            topic, partition = min(lost - tps)
            raise ConfigError(f"The app consumes no partition {partition} of topic {topic!r}.", hint="Check the name.")
        with self._turn() as process:
            process.settle()
            process.rebalance(lost, tps - lost)

    # Switch faults on and off.

    def fail_produce(self, topic: str, *, too_large: bool = False) -> None:
        """Let every write to this topic fail until ``clear_faults``, because the app is not authorized.

        With ``too_large``, the broker refuses each record because of its size: then an output fails its own record.
        """
        self._require(topic, self._targets(), "writes to")
        self._faults.fail_produce(topic, too_large=too_large)

    def refuse_commits(self) -> None:
        """Let the broker refuse every commit until ``clear_faults``."""
        self._faults.refuse_commits()

    def clear_faults(self) -> None:
        """Switch all faults off."""
        self._faults.clear()

    # Look at the results.

    @overload
    def outputs(self, topic: str) -> list[Any]: ...
    @overload
    def outputs(self, topic: str, kind: type[T]) -> list[T]: ...
    def outputs(self, topic: str, kind: Any = None) -> list[Any]:
        """The values written to an output topic, in order, decoded as ``kind``.

        Without ``kind``, they are decoded by the handler's return hint; without a hint they are bytes.
        """
        writers = [handler for handler in self._app.declared_handlers if topic in handler.output_topics]
        self._require(topic, self._output_topics(), "writes outputs to")
        if kind is None:
            return list(map(reader_of_outputs(writers), self.records(topic)))
        decode = decoder_for(kind)
        return [decode(record.value) for record in self.records(topic)]

    def records(self, topic: str) -> list[Record]:
        """The records of a topic, in the order in which they were written."""
        self._require(topic, self._sources() | self._targets(), "reads or writes")
        return list(self._broker.topic(topic).written)

    def dead_letters(self, topic: str) -> list[DeadLetter]:
        """The dead letters in a dead-letter topic, in order, with their reasons."""
        letters = {handler.dead_letter for handler in self._app.handlers if handler.dead_letter is not None}
        self._require(topic, letters, "writes dead letters to")
        return [read_letter(record) for record in self.records(topic)]

    def committed(self, topic: str, *, group: str | None = None) -> dict[int, int]:
        """The committed offset of each partition that has one. Give ``group`` only if several groups consume it."""
        name = self._consumer(topic, group).group
        found = {tp[1]: self._broker.committed(name, tp) for tp in self._tps(topic)}
        return {partition: commit[0] for partition, commit in found.items() if commit is not None}

    def lag(self, topic: str, *, group: str | None = None) -> int:
        """The group's lag: how many offsets are between its commits and the ends of the topic's partitions."""
        handler = self._consumer(topic, group)
        committed = self.committed(topic, group=handler.group)
        ends = {partition: log.end for partition, log in enumerate(self._broker.topic(topic).logs)}
        fresh = dict.fromkeys(ends, 0) if handler.start == "earliest" else ends
        return sum(end - committed.get(partition, fresh[partition]) for partition, end in ends.items())

    def events_of(self, kind: type[E]) -> list[E]:
        """The events of this class, such as ``penstock.core.reports.events.Retried``."""
        return [event for event in self.events if isinstance(event, kind)]

    @contextmanager
    def _turn(self) -> Iterator[Process]:
        """Surround every call that drives the app. After it the app is running, stopped by an error, or killed."""
        if self._is_turning:
            raise ConfigError(
                "A handler cannot drive the bench that runs it.",
                hint="In a handler only produce(), advance() and crash() make sense; call the others in the test.",
            )
        process = self._process = self._process or self._start()
        # At each turn, because two benches of one app may take turns.
        self._users_app.attach_control(process.control)
        self._is_turning = True
        try:
            yield process
            if process.error is not None:
                process.stop("error")
            self._hooks.deliver()
        except BaseException as death:
            process.kill()
            self._end()
            if not isinstance(death, ProcessDied):
                raise
        finally:
            self._is_turning = False
        if process.error is not None:
            self._end()
            self._close_process()
            raise process.error

    def _start(self) -> Process:
        self._hooks = BenchHooks(self._app, self._world, self.events)
        self._hooks.start()
        self._resources = BenchResources(self._app, self._given, self._world)
        process = Process(self._resources.make(), self._world)
        # Tests do not stop a bench. If the app outlives it, the app must not ask this process any more.
        self._detach = weakref.finalize(self, self._users_app.detach_control, process.control)
        return process

    def _close_process(self) -> CallbackError | None:
        """After a clean stop or an error: close the resources and call the hooks. Returns the first error."""
        of_resource = self._resources.close()
        of_hook = self._hooks.stop()
        return of_resource or of_hook

    def _end(self) -> None:
        self._process = None
        self._detach()

    def _tps(self, topic: str) -> list[TopicPartition]:
        return self._broker.topic_partitions(topic)

    def _targets(self) -> set[str]:
        letters = {handler.dead_letter for handler in self._app.handlers if handler.dead_letter is not None}
        return self._output_topics() | letters

    def _output_topics(self) -> set[str]:
        """The topics that handlers declare for outputs, and those that an Out has named so far."""
        return {topic for handler in self._app.handlers for topic in handler.output_topics} | self._world.outputs

    def _sources(self) -> set[str]:
        return {topic for handler in self._app.handlers for topic in handler.consumed_topics}

    def _require_source(self, topic: str, partition: int | None = None) -> None:
        self._require(topic, self._sources(), "consumes")
        if partition is not None and (topic, partition) not in self._tps(topic):
            raise ConfigError(
                f"Topic {topic!r} has no partition {partition}.", hint="Say how many with Bench(app, partitions=...)."
            )

    def _require(self, topic: str, known: set[str], does: str) -> None:
        """Raise a ConfigError for an unknown topic: a test that expects an empty topic would pass with a typo."""
        if topic not in known:
            nearest = get_close_matches(topic, known, n=1, cutoff=0.0)
            hint = f"Did you mean {nearest[0]!r}?" if nearest else "Check the options of its handlers."
            raise ConfigError(f"No handler of app {self._app.name!r} {does} topic {topic!r}.", hint=hint)

    def _consumer(self, topic: str, group: str | None) -> Handler:
        consumers = [handler for handler in self._app.handlers if topic in handler.consumed_topics]
        self._require_source(topic)
        found = [handler for handler in consumers if group in (None, handler.group)]
        if len(found) == 1:
            return found[0]
        groups = ", ".join(sorted(handler.group for handler in consumers))
        raise ConfigError(f"Topic {topic!r} is consumed by these groups: {groups}.", hint="Name one with group=...")


def _to_bytes(text: bytes | str | None) -> bytes | None:
    return text.encode() if isinstance(text, str) else text
