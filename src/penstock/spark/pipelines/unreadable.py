"""Makes dead letters of unreadable records on the driver, if a batch has only a few.

The plan of the batch notes their offsets, and the driver fetches only these records from Kafka. To read the whole batch
again in Spark would cost as much as the batch did.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from pyspark.sql import SparkSession

from penstock.app import Pipeline
from penstock.app.pipelines import Source
from penstock.core.failures.dead_letter import dead_letter
from penstock.core.failures.outcome import Failed, ProducerRecord, Undecodable
from penstock.core.records.record import Record, TopicPartition
from penstock.kafka import Cluster
from penstock.kafka.client.producer import Producer
from penstock.kafka.read.read_records import read_positions
from penstock.spark.internals import collect_texts
from penstock.spark.pipelines.decoded_columns import REASON
from penstock.spark.pipelines.expected_columns import decoded_and_checked, error_type
from penstock.spark.pipelines.unreadable_reasons import reason_of
from penstock.spark.pipelines.writer_schemas import Schemas

_ERROR_TYPE = Undecodable.__name__
_RAW_SCHEMA = (
    "topic string, partition int, offset bigint, key binary, value binary, "
    "headers array<struct<key: string, value: binary>>, timestamp timestamp"
)

Positions = Sequence[tuple[str, int, int]]
"""Topic, partition and offset of each record."""

Letters = Mapping[TopicPartition, Sequence[ProducerRecord]]
"""Dead letters by the partition of the original record, in the order of offsets."""


@dataclass(frozen=True)
class UnreadableRecords:
    """Unreadable records of one source, whose positions are known."""

    pipeline: Pipeline
    source: Source
    schemas: Schemas | None

    def letters(self, session: SparkSession, cluster: Cluster, positions: Positions) -> Letters:
        records = self._fetch(cluster, positions)
        group, topic, now = self.pipeline.group, str(self.pipeline.dead_letter), time.time()
        found: dict[TopicPartition, list[ProducerRecord]] = {}
        for record, reason in zip(records, self._reasons(session, records), strict=True):
            failed = Failed(error_type(reason, _ERROR_TYPE), reason)
            letter = dead_letter(record, failed, topic=topic, group=group, attempts=1, now=now)
            found.setdefault((record.topic, record.partition), []).append(letter)
        return found

    def write_letters(self, session: SparkSession, cluster: Cluster, positions: Positions) -> int:
        """Write the dead letters and wait until the broker has them. Returns their number."""
        count = 0
        # The producer connects while the records are fetched. Started later, it would wait for half a second.
        with Producer(cluster.brokers, settings=self.pipeline.settings) as producer:
            for each in chain.from_iterable(self.letters(session, cluster, positions).values()):
                producer.send(each.topic, each.value, key=each.key, headers=each.headers)
                count += 1
        return count

    def _fetch(self, cluster: Cluster, positions: Positions) -> list[Record]:
        wanted: dict[TopicPartition, set[int]] = {}
        for topic, partition, offset in positions:
            wanted.setdefault((topic, partition), set()).add(offset)
        return sorted(
            read_positions(cluster, wanted), key=lambda record: (record.topic, record.partition, record.offset)
        )

    def _reasons(self, session: SparkSession, records: Sequence[Record]) -> list[str]:
        """Return the reasons of the Python decoders; Spark's reason where Python could read the record."""
        why = reason_of(self.source, self.pipeline.registry)
        reasons = [why(record.value, record.headers) for record in records]
        unexplained = [record for record, reason in zip(records, reasons, strict=True) if reason is None]
        by_spark = iter(self._spark_reasons(session, unexplained) if unexplained else ())
        return [next(by_spark) if reason is None else reason for reason in reasons]

    def _spark_reasons(self, session: SparkSession, records: Sequence[Record]) -> list[str]:
        raw = session.createDataFrame([_raw(record) for record in records], _RAW_SCHEMA).coalesce(1)
        return collect_texts(decoded_and_checked(raw, self.source, self.schemas).select(REASON))


def _raw(record: Record) -> tuple[Any, ...]:
    moment = datetime.fromtimestamp(record.timestamp_ms / 1000, UTC)
    return (
        record.topic,
        record.partition,
        record.offset,
        record.key,
        record.value,
        list(record.headers),
        moment,
    )
