"""Decodes records and checks the expectations of their source, as one Spark expression.

A row meets an expectation if its condition is true; false and null do not. The first expectation that a row does not
meet decides what happens to it. Rows that cannot be read, and tombstones, are not checked.
"""

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BooleanType

from penstock.app import Source
from penstock.errors import ConfigError
from penstock.spark.pipelines.decoded_columns import REASON, columns_of, decoded
from penstock.spark.pipelines.writer_schemas import Schemas

# Whether the row is dropped without a dead letter, and whether it stops the pipeline.
DROPPED = "__penstock_dropped"
FAILS = "__penstock_fails"
EXPECTATION_ERROR = "ExpectationFailed"
_WHOLE = "__penstock_whole"
_UNMET = "__penstock_unmet_"
_REASON_PREFIX = "the row does not meet the expectation "


def decoded_and_checked(raw: DataFrame, source: Source, schemas: Schemas | None) -> DataFrame:
    """Return the decoded rows; with expectations, also ``DROPPED``, ``FAILS`` and a column for each expectation.

    ``REASON`` then also says which expectation a row does not meet, if it is dead-lettered or stops the pipeline.
    """
    rows = decoded(raw, source, schemas)
    if not source.expect:
        return rows
    # The conditions see the columns that the user's function gets, which may be called like the columns of Kafka.
    seen = rows.select(F.struct(*(F.col(name) for name in rows.columns)).alias(_WHOLE), *columns_of(source))
    is_checked = F.col(_WHOLE)[REASON].isNull() & F.col(_WHOLE)["value"].isNotNull()
    unmet = [
        (is_checked & ~F.coalesce(_condition(seen, text), F.lit(False))).alias(unmet_column(number))  # noqa: FBT003
        for number, text in enumerate(source.expect)
    ]
    rows = seen.select(F.col(f"{_WHOLE}.*"), *unmet)
    reason, dropped, fails = F.col(REASON), F.lit(False), F.lit(False)  # noqa: FBT003
    # From the last to the first, so that the first decides.
    in_reverse = [
        (F.col(unmet_column(number)), text, action) for number, (text, action) in enumerate(source.expect.items())
    ][::-1]
    for is_unmet, text, action in in_reverse:
        because = F.lit(None) if action == "drop" else F.lit(f"{_REASON_PREFIX}`{text}`")
        reason = F.when(is_unmet, because).otherwise(reason)
        dropped = F.when(is_unmet, F.lit(action == "drop")).otherwise(dropped)
        fails = F.when(is_unmet, F.lit(action == "fail")).otherwise(fails)
    return rows.withColumns({REASON: reason.cast("string"), DROPPED: dropped, FAILS: fails})


def unmet_column(number: int) -> str:
    """Return the column that says whether a row does not meet the expectation with this number."""
    return f"{_UNMET}{number}"


def error_type(reason: str, of_others: str) -> str:
    """Return the type of error for the headers of a dead letter."""
    return EXPECTATION_ERROR if reason.startswith(_REASON_PREFIX) else of_others


def error_type_column(reason: Column, of_others: str) -> Column:
    return F.when(reason.startswith(_REASON_PREFIX), F.lit(EXPECTATION_ERROR)).otherwise(F.lit(of_others))


def _condition(rows: DataFrame, text: str) -> Column:
    """Return the condition as a column, or raise an error with Spark's reason why it refuses it."""
    names = ", ".join(name for name in rows.columns if name != _WHOLE)
    hint = f"Write a condition in SQL over the columns {names}."
    try:
        condition = F.expr(text)
        kind = rows.select(condition.alias("met")).schema["met"].dataType
    except PySparkException as error:
        why = str(error).split(";\n")[0].strip().splitlines()[0]
        raise ConfigError(f"Spark refuses the expectation {text!r}: {why}", hint=hint) from error
    if not isinstance(kind, BooleanType):
        raise ConfigError(f"The expectation {text!r} is of type {kind.simpleString()}, not a condition.", hint=hint)
    return condition
