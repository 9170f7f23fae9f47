"""Makes dead letters of unreadable records in Spark, with the headers of ``core/failures/dead_letter_headers.py``."""

import time

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock.core.failures.dead_letter_headers import (
    DEAD_LETTER_PREFIX,
    MAX_MESSAGE_BYTES,
    MAX_NAME_BYTES,
    DeadLetterHeader,
    bounded,
)
from penstock.core.records.origin import RETRY_PREFIX
from penstock.errors import HandlerError
from penstock.spark.pipelines.decoded_columns import WHY

_ERROR_TYPE = "Undecodable"
# In bytes of UTF-8.
_LONGEST_LETTER = 4
_HEADERS = "array<struct<key: string, value: binary>>"


def dead_letters(rows: DataFrame, *, topic: str, group: str, reason: Column | None) -> DataFrame:
    """Of decoded rows those that cannot be read, as rows for Kafka: untouched, but for the headers.

    ``reason`` is a better one than that of the rows, where there is any.
    """
    why = F.left(F.col(WHY), F.lit(MAX_MESSAGE_BYTES // _LONGEST_LETTER))
    values = {
        DeadLetterHeader.TOPIC: F.col("topic"),
        DeadLetterHeader.PARTITION: F.col("partition").cast("string"),
        DeadLetterHeader.OFFSET: F.col("offset").cast("string"),
        DeadLetterHeader.TIMESTAMP: F.unix_millis("timestamp").cast("string"),
        DeadLetterHeader.GROUP: F.lit(bounded(group, MAX_NAME_BYTES)),
        DeadLetterHeader.ATTEMPTS: F.lit("1"),
        DeadLetterHeader.ERROR_TYPE: F.lit(_ERROR_TYPE),
        DeadLetterHeader.ERROR_MESSAGE: why if reason is None else F.coalesce(reason, why),
        DeadLetterHeader.FAILED_AT: F.lit(str(round(time.time() * 1000))),
    }
    added = F.array(*(_header(name.value, value) for name, value in values.items()))
    kept = F.filter(F.coalesce(F.col("headers"), F.array().cast(_HEADERS)), _is_kept)
    return rows.filter(F.col(WHY).isNotNull()).select(
        F.lit(topic).alias("topic"), "key", "value", F.concat(kept, added.cast(_HEADERS)).alias("headers")
    )


def halting(rows: DataFrame, pipeline: str) -> DataFrame:
    """The same rows; the first that cannot be read fails the job, with what `HaltedTaskError.find` looks for."""
    where = F.concat(F.col("topic"), F.lit("["), F.col("partition"), F.lit("]@"), F.col("offset"))
    problem = F.concat(F.lit(f"Pipeline {pipeline} stopped at "), where, F.lit(": "), F.col(WHY), F.lit("."))
    hint = F.lit("Mend the record or the declared value, or name a topic for such records with dead_letter=...")
    text = F.concat(
        F.lit("HaltedTaskError: "), F.to_json(F.array(F.lit(HandlerError.__name__), problem, hint)), F.lit(" :halted")
    )
    return rows.filter(F.when(F.col(WHY).isNull(), F.lit(True)).otherwise(F.raise_error(text).cast("boolean")))  # noqa: FBT003


def _header(name: str, value: Column) -> Column:
    return F.struct(F.lit(name).alias("key"), value.cast("binary").alias("value"))


def _is_kept(header: Column) -> Column:
    return ~(header["key"].startswith(DEAD_LETTER_PREFIX) | header["key"].startswith(RETRY_PREFIX))
