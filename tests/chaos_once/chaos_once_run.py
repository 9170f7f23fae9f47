"""One run: two instances copy records while they are killed and frozen and the broker restarts."""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import psutil

from chaos.fleet import Fleet, Process
from chaos_once.sinks import Sink, TableSink, TopicSink
from chaos_spark.chaos_spark_run import write
from penstock.devkit import Embedded, UpOptions
from penstock.kafka import Cluster

# The longest time for one record: long enough that each fault hits records in progress.
_WORK_SECONDS = {"exactly-once": 0.2, "postgresql": 0.02, "share": 0.2}
_INSTANCES = 2
_PARTITIONS = 8
# Longer than the session timeout of the app and the time until the broker notices it.
_FREEZE_SECONDS = 8.0
_PAUSE_SECONDS = (0.5, 2.5)
_TICK_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """``faults`` are kills and freezes in turn. ``bounces`` are clean stops with a start, as in Kafka's own tests.

    ``restarts`` are restarts of the broker, every second one with -9. ``members`` are the kinds of instances, in turns.
    """

    sink: str = "exactly-once"
    members: tuple[str, ...] = ("native",)
    records: int = 100_000
    faults: int = 20
    bounces: int = 4
    restarts: int = 3
    concurrency: int = 64
    seconds: float = 1_800.0
    seed: int = 0


@dataclass(slots=True)
class Outcome:
    """``problems`` are the promises that were broken, a sentence each."""

    figures: dict[str, int | float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


Tell = Callable[[str, int], None]
"""What happens now, and how many records have arrived."""


class ChaosOnceRun:
    """With ``kafka``, the run restarts its broker; without it, the broker keeps running."""

    def __init__(self, brokers: str, folder: Path, options: Options, tell: Tell, kafka: Embedded | None = None) -> None:
        self._brokers, self._folder, self._options, self._kafka = brokers, folder, options, kafka
        self._tell = tell
        self._group, self._source, self._out = (f"{name}-{uuid4().hex[:8]}" for name in ("group", "in", "out"))
        self._chance = random.Random(options.seed)
        self._deadline = time.monotonic() + options.seconds
        self._done: Counter[str] = Counter()

    def run(self) -> Outcome:
        began = time.monotonic()
        records = self._options.records
        self._tell("writing", 0)
        Cluster(self._brokers).create_topics([self._source, self._out], partitions=_PARTITIONS)
        write(self._brokers, self._source, records)
        with self._sink() as sink:
            fleet = Fleet(self._folder, self._environment(sink), self._options.members, app="chaos_once.app:app")
            try:
                self._go_through_faults(fleet, sink)
                self._wait(fleet, sink, records)
                self._tell("stopping", sink.progress())
                self._wait_for_all(fleet)  # before it has a signal handler, a signal would end a process at once
                fleet.stop()
            finally:
                fleet.close()
            self._tell("checking", sink.progress())
            problems = [*fleet.crashed(), *sink.problems(records)]
        figures = {"records": records, **self._done, "seconds": round(time.monotonic() - began, 1)}
        return Outcome(figures, problems)

    def _sink(self) -> Sink:
        if self._options.sink == "postgresql":
            return TableSink()
        return TopicSink(self._brokers, self._out, _PARTITIONS, once=self._options.sink == "exactly-once")

    def _environment(self, sink: Sink) -> dict[str, str]:
        return {
            "CHAOS_SINK": self._options.sink,
            "CHAOS_SECONDS": str(_WORK_SECONDS[self._options.sink]),
            "CHAOS_SOURCE": self._source,
            "CHAOS_GROUP": self._group,
            "CHAOS_CONCURRENCY": str(self._options.concurrency),
            "PENSTOCK_BROKERS": self._brokers,
            **sink.environment,
        }

    def _faults(self) -> list[str]:
        each = self._options.faults
        faults = ["kill", "freeze"] * (each // 2) + ["kill"] * (each % 2)
        faults += ["bounce"] * self._options.bounces + ["restart"] * self._options.restarts
        self._chance.shuffle(faults)
        return faults

    def _go_through_faults(self, fleet: Fleet, sink: Sink) -> None:
        """Spread the faults evenly over the records. Each one hits a random instance."""
        for _ in range(_INSTANCES):
            fleet.start()
        faults = self._faults()
        for number, kind in enumerate(faults, start=1):
            self._wait(fleet, sink, self._options.records * number // (len(faults) + 1))
            # When a transaction ends, many outputs arrive at once, which would trigger many faults at the same time.
            self._rest(fleet)
            if kind == "freeze":
                self._wait_for_thaw(fleet)
            self._tell(kind, sink.progress())
            self._done[kind] += 1
            self._inflict(kind, fleet)

    def _rest(self, fleet: Fleet) -> None:
        until = time.monotonic() + self._chance.uniform(*_PAUSE_SECONDS)
        while time.monotonic() < until:
            fleet.thaw(now=time.time())
            time.sleep(_TICK_SECONDS)

    def _inflict(self, kind: str, fleet: Fleet) -> None:
        if kind == "restart":
            self._wait_for_all(fleet)  # an app that finds no broker at its start ends with an error
            self._restart()
            return
        while len(fleet.awake) + fleet.has_frozen < _INSTANCES:
            fleet.join()
        victim = self._chance.choice(self._wait_for_started(fleet))
        if kind == "freeze":
            fleet.freeze(victim, _FREEZE_SECONDS)
            return
        if kind == "bounce":
            fleet.leave(victim)
        else:
            fleet.kill(victim)
        fleet.join()

    def _restart(self) -> None:
        if self._kafka is None:
            return
        if self._done["restart"] % 2:
            (pid,) = [broker.pid for broker in self._kafka.status().brokers if broker.pid is not None]
            os.kill(pid, signal.SIGKILL)
            while psutil.pid_exists(pid):
                time.sleep(_TICK_SECONDS)
        else:
            self._kafka.down()
        # Name the port: after a clean stop the broker would take the default port.
        self._kafka.up(UpOptions(port=int(self._brokers.rpartition(":")[2])))

    def _wait(self, fleet: Fleet, sink: Sink, records: int) -> None:
        def arrived() -> bool:
            self._tell("running", sink.progress())
            return sink.progress() >= records

        self._until(fleet, arrived, f"{records:,} records")

    def _wait_for_started(self, fleet: Fleet) -> list[Process]:
        """The processes that have finished their imports: others have nothing to lose yet."""
        self._until(fleet, lambda: bool(_started(fleet)), "a process to start")
        return _started(fleet)

    def _wait_for_all(self, fleet: Fleet) -> None:
        self._until(fleet, lambda: len(_started(fleet)) == len(fleet.awake), "all processes to start")

    def _wait_for_thaw(self, fleet: Fleet) -> None:
        self._until(fleet, lambda: not fleet.has_frozen, "a process to wake up")

    def _until(self, fleet: Fleet, condition: Callable[[], bool], what: str) -> None:
        while not condition():
            fleet.thaw(now=time.time())
            if crashes := fleet.crashed():
                raise RuntimeError(crashes[0])
            if time.monotonic() > self._deadline:
                raise TimeoutError(f"{self._options.seconds:g} s were too few for {what}")
            time.sleep(_TICK_SECONDS)


def _started(fleet: Fleet) -> list[Process]:
    return [each for each in fleet.awake if each.events_file.exists() and each.events_file.stat().st_size]
