"""Builds a ``Dispatch`` and its records for tests: no threads, no clock, no Kafka."""

from collections.abc import Sequence

from penstock import Record, Retry
from penstock.core.failures.breaker import Breaker
from penstock.core.failures.outcome import Delayed, Done, Failed, ProducerRecord
from penstock.core.failures.pausing_circuit import circuit_of
from penstock.core.failures.retry_topic import RetryInfo
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.dispatch import Dispatch
from penstock.core.scheduling.effects import Attempt, Returned
from penstock.core.scheduling.fair_queue import Fairness
from penstock.core.scheduling.in_flight import DEFAULT_BYTES, InFlight
from penstock.core.scheduling.lanes import LaneRun, Order

OUTPUT = Done((ProducerRecord("out", None, b"x"),))
OUTPUTS = Done(tuple(ProducerRecord(topic, None, b"x") for topic in ("out", "audit", "out")))
FAILURE = Failed("OSError", "away", retry=Retry(attempts=3, first="1s", jitter=0))
SLOW_FAILURE = Failed("OSError", "away for long", retry=Retry(attempts=3, first="1m", jitter=0))
AWAY = Failed("OSError", "away", final=True)
BLOCKED = Failed("DependencyUnavailable", "the registry does not answer", wait=2.0)
DELAYED = Delayed(5.0, until=5.0)
LONG_DELAYED = Delayed(600.0, until=600.0)
POISON = Failed("Reject", "never", final=True)


def letter_of(tried: Attempt, _failure: Failed) -> ProducerRecord:
    return ProducerRecord("dlq", tried.record.key, tried.record.value)


def retry_record_of(tried: Attempt, _why: Failed | Delayed, delay: float) -> ProducerRecord:
    return ProducerRecord(f"{tried.record.topic}.retry.{delay:g}s", tried.record.key, tried.record.value)


def make_dispatch(
    *,
    order: Order = "partition",
    concurrency: int = 2,
    max_in_flight: int = 40,
    max_in_flight_bytes: int = DEFAULT_BYTES,
    dead_letter: bool = True,
    null_keys_in_order: bool = False,
    retry_topics: Sequence[float] = (),
    breaker: Breaker | None = None,
    batch: int | None = None,
    linger: float = 0.0,
    fairness: Fairness | None = None,
) -> Dispatch:
    return Dispatch(
        order=order,
        null_keys_in_order=null_keys_in_order,
        concurrency=concurrency,
        in_flight=InFlight(max_in_flight, max_in_flight_bytes),
        dead_letter_of=letter_of if dead_letter else None,
        retry_record_of=retry_record_of,
        retry_topics=retry_topics,
        circuit=circuit_of(breaker),
        random=lambda: 0.5,
        fairness=fairness,
        batch=batch,
        linger=linger,
    )


def records(tp: TopicPartition, first: int, count: int) -> list[Record]:
    """The keys repeat every five offsets, and some records have no key."""
    keys = [b"a", b"b", b"c", b"a", None]
    return [Record(*tp, offset, keys[offset % 5], b"") for offset in range(first, first + count)]


def keyed(tp: TopicPartition, *keys: bytes | None, first: int = 0) -> list[Record]:
    return [Record(*tp, first + n, key, b"") for n, key in enumerate(keys)]


def returned(
    tp: TopicPartition, first: int, waits: Sequence[float], *, failures: int = 1, of_this_group: bool = True
) -> list[Returned]:
    """Records of a retry topic that are due after this many seconds."""
    found = records(tp, first, len(waits))
    return [
        Returned(each, RetryInfo(failures, wait, of_this_group=of_this_group))
        for each, wait in zip(found, waits, strict=True)
    ]


def take(dispatch: Dispatch, now: float = 0.0, size: int = 100) -> list[LaneRun]:
    """The runs of all bundles. These tests are about lanes, so each worker is free again at once."""
    runs = []
    for bundle in dispatch.take(now, size):
        runs += bundle
        dispatch.release()
    return runs
