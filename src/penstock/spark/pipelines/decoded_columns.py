"""Decodes Kafka's columns into the columns that a source declares, with Spark expressions: no Python runs per record.

Each record gets a column with the reason why it cannot be read, or null. Callers decide what to do with such records.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from penstock.app.pipelines import META_COLUMNS, VALUE_COLUMN, Source, refuse_meta_columns
from penstock.spark.pipelines.format_columns import (
    BODY,
    INNER,
    Problem,
    field_names,
    parsed,
    schema_id_problems,
    value_problems,
    with_body,
)
from penstock.spark.pipelines.writer_schemas import Schemas

# Internal columns. The user's function does not see them.
REASON = "__penstock_reason"
_PARSED = "__penstock_parsed"
_CORRUPT = "__penstock_corrupt"

_TOMBSTONE = "the value is null (a tombstone); to accept tombstones, declare the value with `| None`"
_NOT_JSON = "the value is not JSON of the declared fields and types"


def decoded(raw: DataFrame, source: Source, schemas: Schemas | None) -> DataFrame:
    """Return the raw columns, the decoded value and ``REASON``. ``schemas`` is for Avro, JSON Schema and Protobuf."""
    if schemas is not None:
        return _by_format(with_body(raw, schemas), source, schemas)
    text = F.col("value").cast("string")
    if source.kind is bytes:
        return _with_reason(raw.withColumn(_PARSED, F.col("value")), [], source)
    if source.kind is str:
        not_text = (~F.is_valid_utf8(F.col(_PARSED)), "the value is not UTF-8 text")
        return _with_reason(raw.withColumn(_PARSED, text), [not_text], source)
    schema = _schema(source)
    if schema is None:
        kind = F.schema_of_variant(F.col(_PARSED))
        problems: list[Problem] = [(F.col(_PARSED).isNull(), "the value is not JSON")]
        if source.kind is dict:
            problems.append((~kind.startswith("OBJECT"), "the value is not a JSON object"))
        return _with_reason(raw.withColumn(_PARSED, F.try_parse_json(text)), problems, source)
    return _with_reason(*_json(raw, schema, text), source)


def _by_format(rows: DataFrame, source: Source, schemas: Schemas) -> DataFrame:
    schema, problems = _schema(source), schema_id_problems(schemas)
    if schema is not None:
        rows, of_value = _json(rows, schema, F.col(BODY).cast("string"))
    else:
        rows = rows.withColumn(_PARSED, parsed(source, schemas))
        of_value = value_problems(source, F.col(_PARSED))
    return _with_reason(rows, [*problems, *of_value], source)


def _json(rows: DataFrame, schema: StructType, text: Column) -> tuple[DataFrame, list[Problem]]:
    # Wrapped in another object: Spark stops reading at the end of an object, and would accept anything after it.
    outer = StructType([StructField(INNER, schema), StructField(_CORRUPT, StringType())])
    whole = F.concat(F.lit(f'{{"{INNER}":'), text, F.lit("}"))
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    found = F.col(_PARSED)
    problems: list[Problem] = [
        (found[_CORRUPT].isNotNull() | found[INNER].isNull(), _NOT_JSON),
        *(
            (is_missing, f"the field {path} is missing or null")
            for path, is_missing in _missing(found[INNER], schema, "")
        ),
    ]
    return rows.withColumn(_PARSED, F.from_json(whole, outer, options)), problems


def selected(rows: DataFrame, source: Source) -> DataFrame:
    """Return the columns that the pipeline's function gets."""
    return rows.select(*columns_of(source))


def columns_of(source: Source) -> list[Column]:
    schema, names, found = _schema(source), field_names(source), F.col(_PARSED)
    if names is not None:
        values = [found[INNER][name].alias(name) for name in names]
    elif schema is None:
        values = [found.alias(VALUE_COLUMN)]
    else:
        defaults = source.shape.defaults if source.shape is not None else {}
        values = [_field(found[INNER], each, defaults.get(each.name)) for each in schema.fields]
    key = F.col("key").cast("string") if source.key is str else F.col("key")
    meta = [key.alias("_key"), *(F.col(name[1:]).alias(name) for name in META_COLUMNS[1:])]
    return [*values, *meta]


def _with_reason(rows: DataFrame, problems: Iterable[Problem], source: Source) -> DataFrame:
    reason = F.when(F.col("value").isNull(), F.lit(None if source.takes_tombstones else _TOMBSTONE))
    for is_so, why in problems:
        reason = reason.when(is_so, why if isinstance(why, Column) else F.lit(why))
    return rows.withColumn(REASON, reason.cast("string"))


def _schema(source: Source) -> StructType | None:
    if source.ddl is not None:
        schema = cast("StructType", StructType.fromDDL(source.ddl))
        refuse_meta_columns(schema.names)
        return schema
    return None if source.shape is None else StructType.fromJson(source.shape.schema)


def _field(record: Column, field: StructField, default: str | None) -> Column:
    column = record[field.name]
    if default is not None:
        constant = F.from_json(F.lit(f'{{"{INNER}":{default}}}'), StructType([StructField(INNER, field.dataType)]))
        column = F.coalesce(column, constant[INNER])
    return column.alias(field.name)


def _missing(value: Column, kind: DataType, path: str) -> Iterator[tuple[str, Column]]:
    """Return each path where null is not allowed, and whether it is null there; Spark ignores that in a schema."""
    if isinstance(kind, StructType):
        for field in kind.fields:
            inner, name = value[field.name], f"{path}.{field.name}" if path else field.name
            if not field.nullable:
                yield name, inner.isNull()
            for deeper, is_missing in _missing(inner, field.dataType, name):
                yield deeper, inner.isNotNull() & is_missing
    elif isinstance(kind, ArrayType):
        yield from _missing_inside(value, kind.elementType, kind.containsNull, path)
    elif isinstance(kind, MapType):
        yield from _missing_inside(F.map_values(value), kind.valueType, kind.valueContainsNull, path)


def _missing_inside(values: Column, kind: DataType, may_be_null: bool, path: str) -> Iterator[tuple[str, Column]]:  # noqa: FBT001 - Spark's flag
    if not may_be_null:
        yield f"{path}[]", F.exists(values, lambda each: each.isNull())
    for number, (deeper, _) in enumerate(_missing(F.lit(None).cast(kind), kind, f"{path}[]")):
        yield deeper, F.exists(values, _check_of(number, kind))


def _check_of(number: int, kind: DataType) -> Callable[[Column], Column]:
    """Return the check of one path inside an element; Spark passes the element later."""
    return lambda element: list(_missing(element, kind, ""))[number][1]
