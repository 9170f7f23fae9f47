"""Offsets by partition, and Spark's JSON form of them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.core.records.record import TopicPartition

Offsets = dict[TopicPartition, int]

# Spark's value for "the start of the log when Spark reads it": retention cannot delete records before that.
EARLIEST = -2


def to_json(offsets: Mapping[TopicPartition, int]) -> str:
    by_topic: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        by_topic.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(by_topic)


def from_json(text: str) -> Offsets:
    """Raises ValueError if the text is not in Spark's form."""
    by_topic = json.loads(text)
    try:
        return {
            (topic, int(partition)): int(offset)
            for topic, partitions in by_topic.items()
            for partition, offset in partitions.items()
        }
    except (AttributeError, TypeError) as error:
        raise ValueError(f"not offsets by topic and partition: {text[:80]}") from error


@dataclass(frozen=True)
class Log:
    """The offsets of a partition: from its first record up to, and without, its end offset."""

    start: int
    end: int
