"""Decodes Avro, JSON Schema and Protobuf with Spark's functions. A batch may have records of several schemas."""

import json
from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.protobuf.functions import from_protobuf

from penstock.app.pipelines import Source
from penstock.codecs.wire_format import HEADERS, ID_LENGTH
from penstock.serde import Avro, Protobuf
from penstock.spark.internals import JvmError, collect_texts
from penstock.spark.pipelines.writer_schemas import Schemas

# Internal columns: the bytes of the schema id (``codecs/wire_format.py``), and the bytes of the value without it.
SCHEMA_ID = "__penstock_schema_id"
BODY = "__penstock_body"
INNER = "v"

Problem = tuple[Column, str | Column]

_END_FIELD = "end"
# Spark's Avro decoder accepts bytes that are left over. So these bytes are added to a value, and decoded as its end.
_END = b"\x9cpenstk\x9c"
_GUID_LENGTH = 17
# The text of the error with which a batch fails when a record has a schema that the plan does not have.
_UNKNOWN_SCHEMA = "penstock: a schema that the plan does not know:"
# How many unknown schemas are fetched at once.
_MAX_UNKNOWN = 1000

_DOES_NOT_FIT = "the value does not fit its schema, or its schema the declared one"


def with_body(raw: DataFrame, schemas: Schemas) -> DataFrame:
    """Return the raw columns, with ``SCHEMA_ID`` and ``BODY``."""
    if not schemas.has_schema_ids:
        return raw.withColumn(BODY, F.col("value"))
    of_header = F.get(
        F.filter(F.col("headers"), lambda each: (each["key"] == HEADERS["value"]) & each["value"].isNotNull()), F.lit(0)
    )["value"]
    in_front = F.expr(f"substring(value, 1, {ID_LENGTH})")
    behind = F.expr(f"substring(value, {ID_LENGTH + 1})")
    rows = raw.withColumn(SCHEMA_ID, of_header)
    return rows.withColumn(BODY, F.when(F.col(SCHEMA_ID).isNull(), behind).otherwise(F.col("value"))).withColumn(
        SCHEMA_ID, F.coalesce(F.col(SCHEMA_ID), in_front)
    )


def parsed(source: Source, schemas: Schemas) -> Column:
    """Return the decoded ``BODY`` as a struct, which has the record in its field ``INNER``."""
    match source.format:
        case Avro():
            return _avro(schemas)
        case Protobuf(message=message):
            body = F.col(BODY) if not schemas.has_schema_ids else _after_message_indexes(schemas)
            return F.struct(_protobuf(body, message.DESCRIPTOR.full_name, schemas).alias(INNER))
    raise TypeError(source.format)


def schema_id_problems(schemas: Schemas) -> list[Problem]:
    """Return what can be wrong with a record's schema id."""
    if not schemas.has_schema_ids:
        return []
    column = F.col(SCHEMA_ID)
    reasons = [F.lit(each) for id_bytes, why in schemas.refused.items() for each in (id_bytes.hex().upper(), why)]
    refused: list[Problem] = []
    if reasons:
        refused = [(_among(schemas.refused), F.try_element_at(F.create_map(*reasons), F.hex(column)))]
    is_new = F.raise_error(F.concat(F.lit(_UNKNOWN_SCHEMA), F.hex(column))).cast("string")
    return [
        (~_is_schema_id(), "the value was not written with a schema registry"),
        *refused,
        (~_among(schemas.known), is_new),
    ]


def value_problems(source: Source, parsed: Column) -> list[Problem]:
    if isinstance(source.format, Avro):
        return [(~F.equal_null(parsed[_END_FIELD], _bytes(_END)), _DOES_NOT_FIT)]
    return [(parsed[INNER].isNull(), _DOES_NOT_FIT)]


def field_names(source: Source) -> list[str] | None:
    """Return the columns of Avro and Protobuf values; None for JSON, whose columns are in ``source.shape``."""
    match source.format:
        case Avro(schema=schema):
            return [str(each["name"]) for each in json.loads(str(schema))["fields"]]
        case Protobuf(message=message):
            return [str(each.name) for each in message.DESCRIPTOR.fields]
    return None


def is_unknown_schema(error: Exception) -> bool:
    try:
        return _UNKNOWN_SCHEMA in str(error)
    except (ConnectionError, JvmError):  # the text of a Java error is fetched from the JVM, which may have ended
        return False


def unknown_schema_ids(raw: DataFrame, schemas: Schemas) -> list[bytes]:
    """Return the schema ids of these records that were not fetched from the registry yet."""
    rows = with_body(raw, schemas).where(
        F.col("value").isNotNull() & _is_schema_id() & ~_among([*schemas.known, *schemas.refused])
    )
    found = rows.select(F.hex(F.col(SCHEMA_ID))).distinct().limit(_MAX_UNKNOWN)
    return [bytes.fromhex(text) for text in collect_texts(found)]


def _avro(schemas: Schemas) -> Column:
    reader = _with_end(schemas.reader)
    if not schemas.has_schema_ids:
        return _from_avro(reader, reader)
    # A branch for each writer's schema; all return the columns of the reader's schema.
    branches = F.when(F.lit(False), _from_avro(reader, reader))  # noqa: FBT003 - this branch only sets the type
    for id_bytes, writer in schemas.known.items():
        branches = branches.when(F.col(SCHEMA_ID) == _bytes(id_bytes), _from_avro(_with_end(writer.schema), reader))
    return branches


def _from_avro(writer: str, reader: str) -> Column:
    whole = F.concat(F.col(BODY), _bytes(_END))
    return from_avro(whole, writer, {"mode": "PERMISSIVE", "avroSchema": reader})


def _with_end(schema: str) -> str:
    end = {"type": "fixed", "name": "penstock_end", "size": len(_END)}
    fields = [{"name": INNER, "type": json.loads(schema)}, {"name": _END_FIELD, "type": end}]
    return json.dumps({"type": "record", "name": "penstock_value", "fields": fields})


def _protobuf(body: Column, name: str, schemas: Schemas) -> Column:
    from penstock.spark.pipelines.protobuf_columns import message_column, spark_has_protobuf  # noqa: PLC0415 - an extra

    if not spark_has_protobuf():
        return message_column(body, schemas.files, name)
    # Missing fields get their default, as in all Protobuf libraries. Large unsigned numbers stay positive.
    options = {"mode": "PERMISSIVE", "emit.default.values": "true", "upcast.unsigned.ints": "true"}
    return from_protobuf(body, name, binaryDescriptorSet=schemas.files, options=options)


def _after_message_indexes(schemas: Schemas) -> Column:
    """Return the bytes after the message indexes; null where those name another message."""
    body = F.when(F.lit(False), F.col(BODY))  # noqa: FBT003 - this branch only sets the type
    for id_bytes, writer in schemas.known.items():
        for indexes in writer.message_indexes:
            begins = F.expr(f"substring({BODY}, 1, {len(indexes)})") == _bytes(indexes)
            body = body.when(
                (F.col(SCHEMA_ID) == _bytes(id_bytes)) & begins, F.expr(f"substring({BODY}, {len(indexes) + 1})")
            )
    return body


def _is_schema_id() -> Column:
    """Whether it is an id or a GUID; Protobuf's message indexes may follow in a header."""
    column, first = F.col(SCHEMA_ID), F.expr(f"substring({SCHEMA_ID}, 1, 1)")
    by_id = (first == _bytes(b"\x00")) & (F.length(column) >= ID_LENGTH)
    return by_id | ((first == _bytes(b"\x01")) & (F.length(column) >= _GUID_LENGTH))


def _among(schema_ids: Iterable[bytes]) -> Column:
    values = [_bytes(each) for each in schema_ids]
    return F.col(SCHEMA_ID).isin(*values) if values else F.lit(False)  # noqa: FBT003


def _bytes(data: bytes) -> Column:
    return F.expr(f"X'{data.hex()}'")
