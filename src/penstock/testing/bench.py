"""The bench: an app on a broker in memory, driven step by step by a test."""

import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, TypeVar, overload

from penstock.app import App, Handler, refuse_unsupported
from penstock.core.records.record import Record, TopicPartition
from penstock.core.reports.events import Event
from penstock.core.settings import Registry, registry_of
from penstock.core.text.durations import Duration, seconds
from penstock.errors import ConfigError
from penstock.serde import decoder_for, encode
from penstock.testing.bench_process import Process
from penstock.testing.clock import Clock
from penstock.testing.dead_letter_view import DeadLetter, read_letter
from penstock.testing.faults import Faults
from penstock.testing.hand_driven_loop import HandDrivenLoop
from penstock.testing.memory_broker import Broker
from penstock.testing.outputs import reader_of_outputs
from penstock.testing.world import World

T = TypeVar("T")
E = TypeVar("E", bound=Event)

Headers = Mapping[str, bytes | str | None] | Iterable[tuple[str, bytes | str | None]]

_START = datetime(2025, 1, 1, tzinfo=UTC)


class ProcessDied(BaseException):
    """Raised by ``crash`` inside a handler, where nothing may catch what ends its process, and caught by the bench."""


class Bench:
    """An app on the real engine, a broker in memory, and a clock that stands still until a test moves it.

    Time passes only in ``advance`` (and where ``rebalance`` and ``stop`` wait for records in progress). No threads, no
    network, no sleeping; the same test always takes the same course. Waits of a ``Retry`` are without their jitter.

    ``def`` handlers run to their end, one after the other. ``async def`` handlers run side by side on a loop with the
    bench's time: one that sleeps wakes when the clock gets there, and one that awaits an ``asyncio.Event`` of the test
    is in progress until the test sets it. Handlers for processes run in this one.

    The app starts with the first ``run_until_idle`` or ``advance``. After ``stop``, ``crash`` or an error, the next of
    them starts it again, from what its groups have committed.

    Args:
        app: The app, as ``penstock run`` would run it.
        partitions: How many partitions each topic has, or each of those named, while others have one.
        now: The time at the start.
        registry: A schema registry in place of the app's; ``"mock://any-name"`` is one in memory.
    """

    def __init__(
        self,
        app: App,
        *,
        partitions: int | Mapping[str, int] = 1,
        now: datetime = _START,
        registry: Registry | str | None = None,
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
        self._clock = Clock(now)
        self._broker = Broker(self._clock.time_ms, partitions)
        self._faults = Faults()
        self._process: Process | None = None
        self._turning = False
        self.events: list[Event] = []
        """Everything that the app reported, events of single records included, from the first start on."""
        loop = HandDrivenLoop(self._clock.elapsed)
        self._world = World(self._broker, self._faults, self._clock, loop, self.events.append)
        # A test need not close its bench; a loop that nobody closed would be a warning.
        weakref.finalize(self, HandDrivenLoop.end, loop)

    @property
    def now(self) -> datetime:
        return self._clock.now()

    # What happens to the app.

    def produce(
        self,
        topic: str,
        value: Any,
        *,
        key: bytes | str | None = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: datetime | None = None,
    ) -> Record:
        """Write one record to a topic that the app consumes.

        Args:
            topic: The topic.
            value: Bytes as they are, text as UTF-8, None as a tombstone, and all else as handlers' outputs are encoded.
            key: Decides the partition, as in Kafka. Without one, partitions take turns.
            headers: By name, or in pairs where a name comes twice.
            partition: Instead of the one that the key belongs to.
            timestamp: The bench's time by default.
        """
        self._require_source(topic, partition)
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        return self._broker.append(
            topic,
            _to_bytes(key),
            None if value is None else encode(value),
            tuple((name, _to_bytes(text)) for name, text in pairs),
            partition=partition,
            timestamp_ms=None if timestamp is None else round(timestamp.timestamp() * 1000),
        )

    def skip_offsets(self, topic: str, count: int = 1, *, partition: int = 0) -> None:
        """Leave a gap, as transaction markers and compaction do."""
        self._require_source(topic, partition)
        self._broker.log((topic, partition)).skip(count)

    def run_until_idle(self) -> None:
        """Do everything that can be done at this moment of the clock.

        What waits for its time goes on waiting: a retry, an incomplete batch for its ``linger``, a commit for its
        ``commit_every``. Where the app would stop with an error, this raises it, after the app has stopped.
        """
        with self._turn() as process:
            process.settle()

    def advance(self, duration: Duration) -> None:
        """Let time pass, and do what falls due in its order; before and after it, everything that can be done.

        Called by a handler, it only says how long that handler takes.
        """
        span = seconds(duration, name="advance")
        if self._turning:
            self._clock.move_to(self._clock.elapsed() + span)
            return
        target = self._clock.elapsed() + span
        with self._turn() as process:
            process.advance(span)
        self._clock.move_to(target)

    def stop(self) -> None:
        """A clean stop: nothing more starts, records in progress are awaited, what is finished is committed."""
        if self._process is None:
            return
        with self._turn() as process:
            process.stop("asked to")
            self._end()

    def crash(self) -> None:
        """The process dies: nothing more is committed. Called by a handler, it dies in the middle of that handler."""
        if self._turning:
            raise ProcessDied
        if self._process is not None:
            self._process.kill()
            self._end()

    def rebalance(self, *, lose: Iterable[TopicPartition] = ()) -> None:
        """Every partition is given back in good order, drained and committed, and comes again as a new epoch.

        Partitions in ``lose``, such as ``("orders", 0)``, are taken away without a chance to drain or commit.
        """
        lost = set(lose)
        tps = {tp for topic in self._sources() for tp in self._tps(topic)}
        if not lost <= tps:
            topic, partition = min(lost - tps)
            raise ConfigError(f"The app consumes no partition {partition} of topic {topic!r}.", hint="Check the name.")
        with self._turn() as process:
            process.settle()
            process.rebalance(lost, tps - lost)

    # Faults.

    def fail_produce(self, topic: str, *, too_large: bool = False) -> None:
        """From now on nothing can be written to this topic, because the app may not, until ``mend``.

        With ``too_large``, because the records are too large for it, which an output's own record is to blame for.
        """
        self._require(topic, self._targets(), "writes to")
        self._faults.fail_produce(topic, too_large=too_large)

    def refuse_commits(self) -> None:
        """From now on the broker accepts no commit, until ``mend``."""
        self._faults.refuse_commits()

    def mend(self) -> None:
        """Everything works again."""
        self._faults.mend()

    # What came of it.

    @overload
    def outputs(self, topic: str) -> list[Any]: ...
    @overload
    def outputs(self, topic: str, kind: type[T]) -> list[T]: ...
    def outputs(self, topic: str, kind: Any = None) -> list[Any]:
        """The values written to a topic, in order, decoded as ``kind``.

        Without it, as what the handler says that it returns; as bytes where it does not say.
        """
        writers = [handler for handler in self._app.handlers if handler.to == topic]
        self._require(
            topic, {handler.to for handler in self._app.handlers if handler.to is not None}, "writes outputs to"
        )
        if kind is None:
            return list(map(reader_of_outputs(writers), self.records(topic)))
        decode = decoder_for(kind)
        return [decode(record.value) for record in self.records(topic)]

    def records(self, topic: str) -> list[Record]:
        """What is in a topic, in the order it was written: keys, headers, partitions, bytes."""
        self._require(topic, self._sources() | self._targets(), "reads or writes")
        return list(self._broker.topic(topic).written)

    def dead_letters(self, topic: str) -> list[DeadLetter]:
        """The dead letters in a topic, in order, with their reasons."""
        letters = {handler.dead_letter for handler in self._app.handlers if handler.dead_letter is not None}
        self._require(topic, letters, "writes dead letters to")
        return [read_letter(record) for record in self.records(topic)]

    def committed(self, topic: str, *, group: str | None = None) -> dict[int, int]:
        """The committed offset of each partition that has one; the group may be left out where there is only one."""
        name = self._consumer(topic, group).group
        found = {tp[1]: self._broker.committed(name, tp) for tp in self._tps(topic)}
        return {partition: commit[0] for partition, commit in found.items() if commit is not None}

    def lag(self, topic: str, *, group: str | None = None) -> int:
        """Records between what the group has committed and the end of the topic."""
        handler = self._consumer(topic, group)
        committed = self.committed(topic, group=handler.group)
        ends = {partition: log.end for partition, log in enumerate(self._broker.topic(topic).logs)}
        fresh = dict.fromkeys(ends, 0) if handler.start == "earliest" else ends
        return sum(end - committed.get(partition, fresh[partition]) for partition, end in ends.items())

    def events_of(self, kind: type[E]) -> list[E]:
        """Those events that are of this kind, such as ``penstock.core.reports.events.Retried``."""
        return [event for event in self.events if isinstance(event, kind)]

    # Inside.

    @contextmanager
    def _turn(self) -> Iterator[Process]:
        """While the app does something. It ends with the app running, stopped with its error, or dead."""
        if self._turning:
            raise ConfigError(
                "A handler cannot drive the bench that runs it.",
                hint="In a handler only produce(), advance() and crash() make sense; call the others in the test.",
            )
        process = self._process = self._process or self._start()
        # Again for each turn, as two benches of one app may take turns.
        self._users_app.attach_control(process.control)
        self._turning = True
        try:
            yield process
            if process.error is not None:
                process.stop("error")
        except BaseException as death:
            process.kill()
            self._end()
            if not isinstance(death, ProcessDied):
                raise
        finally:
            self._turning = False
        if process.error is not None:
            self._end()
            raise process.error

    def _start(self) -> Process:
        process = Process(self._app, self._world)
        # A test need not stop its bench; an app that outlives it must not go on answering.
        self._give_back = weakref.finalize(self, self._users_app.detach_control, process.control)
        return process

    def _end(self) -> None:
        self._process = None
        self._give_back()

    def _tps(self, topic: str) -> list[TopicPartition]:
        return self._broker.topic_partitions(topic)

    def _targets(self) -> set[str]:
        named = {topic for handler in self._app.handlers for topic in (handler.to, handler.dead_letter)}
        return {topic for topic in named if topic is not None}

    def _sources(self) -> set[str]:
        return {topic for handler in self._app.handlers for topic in handler.consumed_topics}

    def _require_source(self, topic: str, partition: int | None = None) -> None:
        self._require(topic, self._sources(), "consumes")
        if partition is not None and (topic, partition) not in self._tps(topic):
            raise ConfigError(
                f"Topic {topic!r} has no partition {partition}.", hint="Say how many with Bench(app, partitions=...)."
            )

    def _require(self, topic: str, known: set[str], does: str) -> None:
        """A misspelt topic would be empty for ever, and a test that expects nothing in it pass."""
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
