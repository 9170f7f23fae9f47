"""Avro, JSON Schema and Protobuf as columns, by Spark's own functions, whatever schemas a batch was written with."""

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

# Columns of our own: what says the schema, and the bytes behind it.
STAMP = "__penstock_stamp"
BODY = "__penstock_body"
INNER = "v"

Problem = tuple[Column, str | Column]

_END_FIELD = "end"
# Spark's Avro reader does not say where a value ended. So this stands behind it, and must be found there again.
_END = b"\x9cpenstk\x9c"
_GUID_LENGTH = 17
# How a batch says that it has met a schema that its plan does not know.
_NEW = "penstock: a schema that the plan does not know:"
# The most that are asked for at once.
_MOST_NEW = 1000

_DOES_NOT_FIT = "the value does not fit its schema, or its schema the declared one"


def with_body(raw: DataFrame, schemas: Schemas) -> DataFrame:
    """The raw columns, with the stamp apart from the value's own bytes."""
    if not schemas.is_stamped:
        return raw.withColumn(BODY, F.col("value"))
    of_header = F.get(
        F.filter(F.col("headers"), lambda each: (each["key"] == HEADERS["value"]) & each["value"].isNotNull()), F.lit(0)
    )["value"]
    in_front = F.expr(f"substring(value, 1, {ID_LENGTH})")
    behind = F.expr(f"substring(value, {ID_LENGTH + 1})")
    rows = raw.withColumn(STAMP, of_header)
    return rows.withColumn(BODY, F.when(F.col(STAMP).isNull(), behind).otherwise(F.col("value"))).withColumn(
        STAMP, F.coalesce(F.col(STAMP), in_front)
    )


def parsed(source: Source, schemas: Schemas) -> Column:
    """The value of ``BODY`` as a struct, with the record inside of it as ``INNER``."""
    match source.format:
        case Avro():
            return _avro(schemas)
        case Protobuf(message=message):
            body = F.col(BODY) if not schemas.is_stamped else _behind_lead(schemas)
            return F.struct(_protobuf(body, message.DESCRIPTOR.full_name, schemas).alias(INNER))
    raise TypeError(source.format)


def stamp_problems(schemas: Schemas) -> list[Problem]:
    """What can be wrong with a record before its value is looked at."""
    if not schemas.is_stamped:
        return []
    stamp = F.col(STAMP)
    reasons = [F.lit(each) for stamp, why in schemas.refused.items() for each in (stamp.hex().upper(), why)]
    refused: list[Problem] = []
    if reasons:
        refused = [(_among(schemas.refused), F.try_element_at(F.create_map(*reasons), F.hex(stamp)))]
    is_new = F.raise_error(F.concat(F.lit(_NEW), F.hex(stamp))).cast("string")
    return [
        (~_is_stamp(), "the value was not written with a schema registry"),
        *refused,
        (~_among(schemas.known), is_new),
    ]


def value_problems(source: Source, parsed: Column) -> list[Problem]:
    if isinstance(source.format, Avro):
        return [(~F.equal_null(parsed[_END_FIELD], _bytes(_END)), _DOES_NOT_FIT)]
    return [(parsed[INNER].isNull(), _DOES_NOT_FIT)]


def field_names(source: Source) -> list[str] | None:
    """The columns of Avro's and Protobuf's values; those of JSON are in the source's shape."""
    match source.format:
        case Avro(schema=schema):
            return [str(each["name"]) for each in json.loads(str(schema))["fields"]]
        case Protobuf(message=message):
            return [str(each.name) for each in message.DESCRIPTOR.fields]
    return None


def tells_of_new_schemas(error: Exception) -> bool:
    try:
        return _NEW in str(error)
    except (ConnectionError, JvmError):  # Java's errors are asked of their JVM, which may be gone
        return False


def new_stamps(raw: DataFrame, schemas: Schemas) -> list[bytes]:
    """The stamps in these records that nobody has asked the registry for."""
    rows = with_body(raw, schemas).where(
        F.col("value").isNotNull() & _is_stamp() & ~_among([*schemas.known, *schemas.refused])
    )
    found = rows.select(F.hex(F.col(STAMP))).distinct().limit(_MOST_NEW)
    return [bytes.fromhex(text) for text in collect_texts(found)]


def _avro(schemas: Schemas) -> Column:
    reader = _with_end(schemas.reader)
    if not schemas.is_stamped:
        return _from_avro(reader, reader)
    # A branch for each schema that was written with; all of them give what the reader's schema says.
    branches = F.when(F.lit(False), _from_avro(reader, reader))  # noqa: FBT003 - and one that gives the type
    for stamp, writer in schemas.known.items():
        branches = branches.when(F.col(STAMP) == _bytes(stamp), _from_avro(_with_end(writer.schema), reader))
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
    # What was not written has its default, as for every reader of Protobuf; no number is cut off.
    options = {"mode": "PERMISSIVE", "emit.default.values": "true", "upcast.unsigned.ints": "true"}
    return from_protobuf(body, name, binaryDescriptorSet=schemas.files, options=options)


def _behind_lead(schemas: Schemas) -> Column:
    """What follows the place of the message in its schema; null where that is another message's."""
    body = F.when(F.lit(False), F.col(BODY))  # noqa: FBT003 - for the type
    for stamp, writer in schemas.known.items():
        for lead in writer.message_indexes:
            begins = F.expr(f"substring({BODY}, 1, {len(lead)})") == _bytes(lead)
            body = body.when((F.col(STAMP) == _bytes(stamp)) & begins, F.expr(f"substring({BODY}, {len(lead) + 1})"))
    return body


def _is_stamp() -> Column:
    """An id in five bytes, or in more with Protobuf's place of a message; or a GUID."""
    stamp, first = F.col(STAMP), F.expr(f"substring({STAMP}, 1, 1)")
    by_id = (first == _bytes(b"\x00")) & (F.length(stamp) >= ID_LENGTH)
    return by_id | ((first == _bytes(b"\x01")) & (F.length(stamp) >= _GUID_LENGTH))


def _among(stamps: Iterable[bytes]) -> Column:
    values = [_bytes(each) for each in stamps]
    return F.col(STAMP).isin(*values) if values else F.lit(False)  # noqa: FBT003


def _bytes(data: bytes) -> Column:
    return F.expr(f"X'{data.hex()}'")
