"""A pipeline's sources as DataFrames: of a stream, or of a range that is over."""

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from penstock.app import Pipeline, Source
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.batch_size import BatchSize
from penstock.spark.columns import SOURCE_COLUMNS
from penstock.spark.internals import collect_smallest
from penstock.spark.offsets import Offsets, to_json
from penstock.spark.pipelines.dead_letter_rows import halting
from penstock.spark.pipelines.decoded_columns import WHY, decoded, selected
from penstock.spark.pipelines.writer_schemas import Schemas
from penstock.spark.source import reading_options

# What a source's records are counted as in its plan; its name follows.
READ_METRIC = "penstock.read."

# Of so many unreadable records of a batch, Spark notes the places; the driver fetches those from Kafka itself. Where
# there are more, Spark reads the batch once more. Spark keeps what was noted as text, for each of its last tasks, which
# are thousands; so a place is three numbers.
MOST_PLACES = 256

_FIRST_BATCH = 250_000


def read_stream(
    session: SparkSession,
    pipeline: Pipeline,
    name: str,
    *,
    clients: Mapping[str, str],
    start: Offsets,
    schemas: Mapping[str, Schemas],
) -> DataFrame:
    """What arrives from ``start`` on, as the pipeline's function gets it."""
    source = pipeline.sources[name]
    options = {
        **reading_options(clients),
        "subscribe": ",".join(source.topics),
        "startingOffsets": to_json(of_source(source, start)),
        "maxOffsetsPerTrigger": str(of_each_source(pipeline, first_size(pipeline).size)),
    }
    raw = session.readStream.format("kafka").options(**options).load().select(*SOURCE_COLUMNS)
    return _readable(raw, pipeline, name, schemas.get(name))


def first_size(pipeline: Pipeline) -> BatchSize:
    """Small enough to be over soon whatever Spark is to do, and what its successors aim at."""
    return BatchSize(_FIRST_BATCH, most=pipeline.max_micro_batch, seconds=pipeline.micro_batch)


def of_each_source(pipeline: Pipeline, size: int) -> int:
    """Spark's limit is one for each source."""
    return max(1, size // len(pipeline.sources))


def read_range(
    session: SparkSession,
    *,
    clients: Mapping[str, str],
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
) -> DataFrame:
    """Kafka's columns of exactly these records, from each start up to and without each end."""
    options = {
        **reading_options(clients),
        "assign": _partitions(end),
        "startingOffsets": to_json(start),
        "endingOffsets": to_json(end),
    }
    return session.read.format("kafka").options(**options).load().select(*SOURCE_COLUMNS)


def readable_range(
    session: SparkSession,
    pipeline: Pipeline,
    name: str,
    *,
    clients: Mapping[str, str],
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    schemas: Mapping[str, Schemas],
) -> DataFrame:
    """A range as the pipeline's function gets it."""
    source = pipeline.sources[name]
    raw = read_range(session, clients=clients, start=of_source(source, start), end=of_source(source, end))
    return _readable(raw, pipeline, name, schemas.get(name))


def of_source(source: Source, offsets: Mapping[TopicPartition, int]) -> Offsets:
    return {place: offset for place, offset in offsets.items() if place[0] in source.topics}


def _readable(raw: DataFrame, pipeline: Pipeline, name: str, schemas: Schemas | None) -> DataFrame:
    """Counted, and without what cannot be read; where there are no dead letters, such a record ends the job."""
    source = pipeline.sources[name]
    # What is observed here is also a wall for the optimizer: filters that it would push through it would have Spark
    # read the JSON twice.
    topic = F.array_position(F.array(*map(F.lit, source.topics)), F.col("topic")).cast("int").alias("topic")
    place = F.when(F.col(WHY).isNotNull(), F.struct(topic, "partition", "offset"))
    rows = decoded(raw, source, schemas).observe(
        f"{READ_METRIC}{name}",
        F.count(F.lit(1)).alias("read"),
        F.count(F.col(WHY)).alias("unreadable"),
        collect_smallest(place, MOST_PLACES).alias("places"),
    )
    rows = halting(rows, pipeline.name) if pipeline.dead_letter is None else rows.filter(F.col(WHY).isNull())
    return selected(rows, source)


def _partitions(offsets: Mapping[TopicPartition, int]) -> str:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(offsets):
        by_topic.setdefault(topic, []).append(partition)
    return json.dumps(by_topic)
