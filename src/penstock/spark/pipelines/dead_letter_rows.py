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
from penstock.spark.pipelines.decoded_columns import REASON
from penstock.spark.pipelines.expected_columns import error_type_column

_ERROR_TYPE = "Undecodable"
# A character has up to four bytes in UTF-8.
_MAX_CHARACTER_BYTES = 4
_HEADERS = "array<struct<key: string, value: binary>>"


def dead_letters(rows: DataFrame, *, topic: str, group: str, reason: Column | None) -> DataFrame:
    """Return the unreadable ones of the decoded rows as rows for Kafka. Only their headers change.

    ``reason`` is a column with a more exact reason, null where there is none.
    """
    why = F.left(F.col(REASON), F.lit(MAX_MESSAGE_BYTES // _MAX_CHARACTER_BYTES))
    values = {
        DeadLetterHeader.TOPIC: F.col("topic"),
        DeadLetterHeader.PARTITION: F.col("partition").cast("string"),
        DeadLetterHeader.OFFSET: F.col("offset").cast("string"),
        DeadLetterHeader.TIMESTAMP: F.unix_millis("timestamp").cast("string"),
        DeadLetterHeader.GROUP: F.lit(bounded(group, MAX_NAME_BYTES)),
        DeadLetterHeader.ATTEMPTS: F.lit("1"),
        DeadLetterHeader.ERROR_TYPE: error_type_column(F.col(REASON), _ERROR_TYPE),
        DeadLetterHeader.ERROR_MESSAGE: why if reason is None else F.coalesce(reason, why),
        DeadLetterHeader.FAILED_AT: F.lit(str(round(time.time() * 1000))),
    }
    added = F.array(*(_header(name.value, value) for name, value in values.items()))
    kept = F.filter(F.coalesce(F.col("headers"), F.array().cast(_HEADERS)), _is_kept)
    return rows.filter(F.col(REASON).isNotNull()).select(
        F.lit(topic).alias("topic"), "key", "value", F.concat(kept, added.cast(_HEADERS)).alias("headers")
    )


def halting(rows: DataFrame, pipeline: str, is_fatal: Column) -> DataFrame:
    """Return the same rows. The first fatal one fails the job, with a text that `HaltedTaskError.find` parses."""
    where = F.concat(F.col("topic"), F.lit("["), F.col("partition"), F.lit("]@"), F.col("offset"))
    problem = F.concat(F.lit(f"Pipeline {pipeline} stopped at "), where, F.lit(": "), F.col(REASON), F.lit("."))
    hint = F.lit(
        "Fix the record or what the source declares, or let such records become dead letters: name a topic for them "
        "with dead_letter=..."
    )
    text = F.concat(
        F.lit("HaltedTaskError: "), F.to_json(F.array(F.lit(HandlerError.__name__), problem, hint)), F.lit(" :halted")
    )
    return rows.filter(F.when(~is_fatal, F.lit(True)).otherwise(F.raise_error(text).cast("boolean")))  # noqa: FBT003


def _header(name: str, value: Column) -> Column:
    return F.struct(F.lit(name).alias("key"), value.cast("binary").alias("value"))


def _is_kept(header: Column) -> Column:
    return ~(header["key"].startswith(DEAD_LETTER_PREFIX) | header["key"].startswith(RETRY_PREFIX))
