"""Finds the most frequent keys of a topic in bounded memory."""

from typing import Any

from penstock.core.records.key_skew_rules import KeyCount, KeySurvey
from penstock.core.records.record import TopicPartition
from penstock.errors import SetupError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.admin.log_bounds import Bounds
from penstock.kafka.read.read_records import read_span
from penstock.ops.topic_facts import require_bounds

# Counts up to 12,288 keys, with an error of at most 0.02 % of all records.
_LG_SIZE = 14
_LG_DISTINCT = 12
# Further keys have too few records to matter.
_KEYS_KEPT = 1_000


class KeySketch:
    """Counts keys and their partitions. Needs ``datasketches``."""

    def __init__(self, topic: str, partitions: int) -> None:
        self._sketches = _datasketches()
        self._topic = topic
        self._counts = [0] * partitions
        self._unkeyed = 0
        self._keys = self._sketches.frequent_items_sketch(_LG_SIZE)
        # A frequent key is also frequent together with its partition, unless it is spread over many partitions.
        self._homes = self._sketches.frequent_items_sketch(_LG_SIZE)
        self._distinct = self._sketches.hll_sketch(_LG_DISTINCT)

    def add(self, key: bytes | None, partition: int) -> None:
        self._counts[partition] += 1
        if key is None:
            self._unkeyed += 1
            return
        self._keys.update(key)
        self._homes.update((key, partition))
        self._distinct.update(hash(key))

    def survey(self) -> KeySurvey:
        all_that_may_be = self._sketches.frequent_items_error_type.NO_FALSE_NEGATIVES
        homes: dict[bytes, list[int]] = {}
        for (key, partition), *_ in self._homes.get_frequent_items(all_that_may_be):
            homes.setdefault(key, []).append(partition)
        found = [
            KeyCount(key, least, most, tuple(sorted(homes.get(key, ()))))
            for key, _, least, most in self._keys.get_frequent_items(all_that_may_be)
        ]
        found.sort(key=lambda each: (-each.least, -each.most, each.key))
        return KeySurvey(
            self._topic,
            tuple(self._counts),
            tuple(found[:_KEYS_KEPT]),
            self._unkeyed,
            round(self._distinct.get_estimate()),
        )


def survey_keys(cluster: Cluster, topic: str, *, sample: int | None) -> KeySurvey:
    """Count the keys of about the last ``sample`` records, or of all.

    The sample has the same share of every partition, so that large partitions weigh more than small ones.
    """
    bounds = require_bounds(cluster, cluster.topic_partitions([topic]))
    starts = _starts(bounds, sample)
    sketch = KeySketch(topic, len(bounds))
    for record in read_span(cluster, starts, {tp: each.end for tp, each in bounds.items()}):
        sketch.add(record.key, record.partition)
    return sketch.survey()


def _starts(bounds: dict[TopicPartition, Bounds], sample: int | None) -> dict[TopicPartition, int]:
    total = sum(each.end - each.start for each in bounds.values())
    if sample is None or sample >= total:
        return {tp: each.start for tp, each in bounds.items()}
    return {tp: each.end - -(-(each.end - each.start) * sample // total) for tp, each in bounds.items()}


def _datasketches() -> Any:
    try:
        import datasketches  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise SetupError(
            "Counting keys needs the package datasketches, which is not installed.",
            hint="Run `pip install 'penstock[keys]'`.",
        ) from error
    return datasketches
