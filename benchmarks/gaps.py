"""Topics whose logs have gaps: some offsets are transaction markers, or were compacted away."""

import time
from collections.abc import Callable

from bench import KEYS, fill

from penstock.kafka import Cluster, make_producer
from penstock.kafka.read.read_records import read_topic

# Segments are closed and compacted as soon as the broker can.
_COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "100",
}
_PARTITIONS = 4
_LOOK_SECONDS = 5.0


def fill_in_transactions(
    brokers: str, topic: str, records: int, value_of: Callable[[int], bytes], *, each: int = 10_000
) -> None:
    """A new topic; every transaction of ``each`` records adds a marker to every partition."""
    Cluster(brokers).create_topics([topic], partitions=_PARTITIONS)
    producer = make_producer(brokers, settings={"linger.ms": 50}, transactional_id=topic)
    producer.init_transactions()
    for start in range(0, records, each):
        producer.begin_transaction()
        for number in range(start, min(start + each, records)):
            key = KEYS[number % len(KEYS)]
            producer.produce(topic, value=value_of(number), key=key, partition=number % _PARTITIONS)
        producer.commit_transaction()


def fill_and_compact(brokers: str, topic: str, records: int, value_of: Callable[[int], bytes]) -> None:
    """A new topic with as many records, and half as many offsets more: every third was replaced by a later one."""
    Cluster(brokers).create_topics([topic], partitions=_PARTITIONS, config=_COMPACTED)
    fill(brokers, topic, records + records // 2, _PARTITIONS, value_of, key_of=_replacing_key)
    # Only closed segments are compacted, and a segment is closed by a record that comes after its time.
    while sum(1 for _ in read_topic(brokers, topic)) > records + records // 50:
        time.sleep(_LOOK_SECONDS)
        fill(brokers, topic, _PARTITIONS, _PARTITIONS, value_of, key_of=lambda _: b"last")


def _replacing_key(number: int) -> bytes:
    """In every third round through the partitions, records replace those of the round before."""
    replaces = number // _PARTITIONS % 3 == 2  # noqa: PLR2004
    return b"key-%d" % (number - _PARTITIONS if replaces else number)
