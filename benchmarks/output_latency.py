"""The time from producing a record to its output, for a handler that returns its value.

Each value is the moment at which it was produced. The broker stamps each output with the moment at which it arrived.
"""

import time
from uuid import uuid4

from penstock.kafka import Cluster, make_producer
from penstock.kafka.read.read_records import read_topic


def stamped_topic(brokers: str, partitions: int) -> str:
    """A new topic for outputs."""
    topic = f"bench-{uuid4().hex[:8]}"
    Cluster(brokers).create_topics([topic], partitions=partitions, config={"message.timestamp.type": "LogAppendTime"})
    return topic


def produce_steadily(brokers: str, topic: str, *, partitions: int, rate: float, seconds: float) -> int:
    """Returns how many records it wrote."""
    producer = make_producer(brokers, settings={"linger.ms": 1})
    producer.list_topics(topic, timeout=30)
    began, sent = time.time(), 0
    while (passed := time.time() - began) < seconds:
        while sent < passed * rate:
            producer.produce(topic, b"%.6f" % time.time(), key=b"%d" % (sent % 100), partition=sent % partitions)
            sent += 1
        producer.poll(0)
        time.sleep(0.001)
    producer.flush(60)
    return sent


def latencies(brokers: str, out: str, *, skip: float = 0.25) -> list[float]:
    """The seconds of each record, sorted, without the share ``skip`` at the beginning, when workers start."""
    taken = [(float(each.value or b"0"), (each.timestamp_ms or 0) / 1000) for each in read_topic(brokers, out)]
    taken.sort()
    return sorted(max(0.0, arrived - produced) for produced, arrived in taken[int(len(taken) * skip) :])


def percentile(taken: list[float], share: float) -> float:
    return taken[min(len(taken) - 1, int(len(taken) * share))] if taken else float("nan")
