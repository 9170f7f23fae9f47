"""One run.

A Spark cluster handles records while its executors and its driver are killed. Then the outputs are checked.
"""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from chaos_spark.driver import Driver
from kafka_tools import lag_by_kafka, lag_by_penstock
from penstock.core.records.record import Record
from penstock.kafka import Cluster, make_producer
from penstock.kafka.read.read_records import read_topic
from standalone import StandaloneCluster

_PARTITIONS = 4
_KEYS = 97
_TICK_SECONDS = 0.1
_FLUSH_SECONDS = 120.0
_CHUNK = 20_000
# Each kill happens a random time after its share of the records is committed, so that it hits a slice in progress.
_DELAY_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    records: int = 200_000
    executor_kills: int = 5
    driver_kills: int = 2
    delivery: str = "exactly-once"
    seconds: float = 900.0
    seed: int = 0


@dataclass(slots=True)
class Outcome:
    """``problems`` are the promises that were broken, a sentence each."""

    figures: dict[str, int | float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


T = TypeVar("T")
Tell = Callable[[str, int], None]
"""What happens now, and how many records are committed."""


class ChaosSparkRun:
    def __init__(self, brokers: str, spark: StandaloneCluster, folder: Path, options: Options, tell: Tell) -> None:
        self._brokers, self._spark, self._folder, self._options = brokers, spark, folder, options
        self._cluster = Cluster(brokers)
        self._tell = tell
        self._group, self._topic, self._out = (f"{name}-{uuid4().hex[:8]}" for name in ("group", "in", "out"))
        self._chance = random.Random(options.seed)
        self._deadline = time.monotonic() + options.seconds
        self._drivers = 0
        self._killed: Counter[str] = Counter()

    def run(self) -> Outcome:
        began = time.monotonic()
        self._tell("writing", 0)
        self._cluster.create_topics([self._topic, self._out], partitions=_PARTITIONS)
        write(self._brokers, self._topic, self._options.records)
        with ExitStack() as stack:
            driver = self._start(stack)
            for number, kind in enumerate(self._faults(), start=1):
                self._wait_for_share(number, driver)
                driver = self._inflict(kind, driver, stack)
            self._wait(lambda: self._committed() >= self._options.records, driver, "the end")
            self._tell("stopping", self._committed())
            code = driver.stop()
        self._tell("checking", self._committed())
        outcome = self._check()
        if code:
            outcome.problems.append(f"the last driver ended with {code}: {driver.said()}")
        outcome.figures["seconds"] = round(time.monotonic() - began, 1)
        return outcome

    def _faults(self) -> list[str]:
        faults = ["executor"] * self._options.executor_kills + ["driver"] * self._options.driver_kills
        self._chance.shuffle(faults)
        return faults

    @property
    def _kills(self) -> int:
        return self._options.executor_kills + self._options.driver_kills

    def _start(self, stack: ExitStack) -> Driver:
        self._drivers += 1
        names = {
            "GROUP": self._group,
            "TOPIC": self._topic,
            "OUT": self._out,
            "DELIVERY": self._options.delivery,
            # Several slices of each partition for each kill.
            "SLICE": str(max(2, self._options.records // (5 * _PARTITIONS * (self._kills + 1)))),
        }
        driver = Driver(
            f"driver-{self._drivers}",
            self._folder,
            master=self._spark.master,
            brokers=self._brokers,
            variables={f"CHAOS_{name}": value for name, value in names.items()},
        )
        stack.callback(driver.close)
        return driver

    def _inflict(self, kind: str, driver: Driver, stack: ExitStack) -> Driver:
        time.sleep(self._chance.uniform(0, _DELAY_SECONDS))
        self._tell(f"{kind} killed", self._committed())
        self._killed[kind] += 1
        if kind == "executor":
            executors = self._wait(self._spark.executors, driver, "an executor to kill")
            self._chance.choice(sorted(executors, key=lambda process: process.pid)).kill()
            return driver
        driver.kill()
        return self._start(stack)

    def _wait_for_share(self, number: int, driver: Driver) -> None:
        """Spread the kills evenly over the records."""
        share = self._options.records * number // (self._kills + 1)
        self._wait(lambda: self._committed() >= share, driver, f"{share:,} committed records")

    def _wait(self, condition: Callable[[], T], driver: Driver, what: str) -> T:
        while not (value := condition()):
            driver.require_alive()
            self._tell("running", self._committed())
            if time.monotonic() > self._deadline:
                so_far = f"{self._committed():,} committed, driver {self._drivers}"
                raise TimeoutError(f"{self._options.seconds:g} s were too few for {what}: {so_far}: {driver.said()}")
            time.sleep(_TICK_SECONDS)
        return value

    def _committed(self) -> int:
        return sum(self._cluster.committed(self._group, self._cluster.topic_partitions([self._topic])).values())

    def _check(self) -> Outcome:
        exactly_once = self._options.delivery == "exactly-once"
        outcome = check(read_topic(self._brokers, self._out), self._options.records, exactly_once=exactly_once)
        lags = lag_by_kafka(self._brokers, self._group)
        ours = lag_by_penstock(self._brokers, self._group)
        if ours or len(lags) != _PARTITIONS or any(lags.values()):
            outcome.problems.append(f"the group lags: {ours} by ours, {lags} by Kafka's own tool")
        outcome.figures |= {f"{kind}s killed": self._killed[kind] for kind in ("executor", "driver")}
        return outcome


def check(outputs: Iterator[Record], records: int, *, exactly_once: bool) -> Outcome:
    """Each output exists.

    With exactly-once, it exists once, and the outputs of a key are in the order of their records.
    """
    seen: Counter[int] = Counter()
    last: dict[bytes | None, int] = {}
    disordered = 0
    for output in outputs:
        number = int(output.value or b"-1")
        seen[number] += 1
        disordered += number < last.get(output.key, -1)
        last[output.key] = max(number, last.get(output.key, -1))
    missing = sum(1 for number in range(records) if not seen[number])
    repeated = sum(count - 1 for count in seen.values())
    strange = sum(1 for number in seen if not 0 <= number < records)
    always = {"missing": missing, "of no record": strange}
    with_exactly_once = {"repeated": repeated, "out of order": disordered}
    promised = {**always, **(with_exactly_once if exactly_once else {})}
    problems = [f"{count:,} of {records:,} outputs are {what}" for what, count in promised.items() if count]
    return Outcome({"records": records, "outputs": sum(seen.values()), **always, **with_exactly_once}, problems)


def write(brokers: str, topic: str, records: int) -> None:
    producer = make_producer(brokers, settings={})
    failures: list[object] = []

    def on_delivery(error: object, _message: object) -> None:
        if error is not None:
            failures.append(error)

    for number in range(records):
        if not number % _CHUNK:
            producer.flush(_FLUSH_SECONDS)  # otherwise the client's buffer overflows
        producer.produce(topic, value=b"%d" % number, key=b"key-%d" % (number % _KEYS), on_delivery=on_delivery)
    if producer.flush(_FLUSH_SECONDS) or failures:
        raise RuntimeError(f"the broker did not take what was written: {failures[:1]}")
