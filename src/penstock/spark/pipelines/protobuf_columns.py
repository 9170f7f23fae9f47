"""Decodes Protobuf in Python, for sessions without the package spark-protobuf, which not every Maven registry has.

Sessions with the package use Spark's ``from_protobuf``, which is faster (``format_columns.py`` chooses). Types and
values are the same with both.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from penstock.spark.internals import has_class

Convert = Callable[[Any], Any]

_UNSIGNED_64 = DecimalType(20, 0)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SCALARS: dict[int, tuple[DataType, Convert]] = {
    FieldDescriptor.CPPTYPE_INT32: (IntegerType(), int),
    FieldDescriptor.CPPTYPE_INT64: (LongType(), int),
    FieldDescriptor.CPPTYPE_UINT32: (LongType(), int),
    FieldDescriptor.CPPTYPE_UINT64: (_UNSIGNED_64, Decimal),
    FieldDescriptor.CPPTYPE_DOUBLE: (DoubleType(), float),
    FieldDescriptor.CPPTYPE_FLOAT: (FloatType(), float),
    FieldDescriptor.CPPTYPE_BOOL: (BooleanType(), bool),
    FieldDescriptor.CPPTYPE_STRING: (StringType(), lambda value: value),
}
_WELL_KNOWN: dict[str, tuple[DataType, Convert]] = {
    "google.protobuf.Timestamp": (
        TimestampType(),
        lambda value: _EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1000),
    ),
    "google.protobuf.Duration": (
        DayTimeIntervalType(),
        lambda value: timedelta(seconds=value.seconds, microseconds=value.nanos / 1000),
    ),
}


def spark_has_protobuf() -> bool:
    """Whether the running session has spark-protobuf."""
    session = SparkSession.getActiveSession()
    assert session is not None  # noqa: S101 - columns are made only while a session runs
    return has_class(session, "org/apache/spark/sql/protobuf/ProtobufDataToCatalyst")


def message_column(body: Column, files: bytes, name: str) -> Column:
    """Return the message in these bytes as a struct; null where the bytes are no such message.

    Workers need only ``files``, a descriptor set, and not the user's message class.
    """
    kind, _ = _of_message(_message(files, name).DESCRIPTOR)

    def read(data: bytes | None) -> tuple[Any, ...] | None:
        if data is None:
            return None
        message = _message(files, name)
        try:
            found = message.FromString(bytes(data))
        except (DecodeError, RecursionError, ValueError):
            return None
        return _converter(files, name)(found) if found.IsInitialized() else None

    return F.udf(read, kind)(body)


@cache
def _message(files: bytes, name: str) -> Any:
    pool = descriptor_pool.DescriptorPool()
    for each in descriptor_pb2.FileDescriptorSet.FromString(files).file:
        pool.Add(each)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


@cache
def _converter(files: bytes, name: str) -> Convert:
    return _of_message(_message(files, name).DESCRIPTOR)[1]


def _of_message(descriptor: Descriptor) -> tuple[DataType, Convert]:
    if descriptor.full_name in _WELL_KNOWN:
        return _WELL_KNOWN[descriptor.full_name]
    fields = [(each.name, each.has_presence, *_of_field(each)) for each in descriptor.fields]
    kind = StructType([StructField(name, each) for name, _, each, _ in fields])

    def convert(message: Any) -> tuple[Any, ...]:
        return tuple(
            None if has_presence and not message.HasField(name) else each(getattr(message, name))
            for name, has_presence, _, each in fields
        )

    return kind, convert


def _of_field(field: FieldDescriptor) -> tuple[DataType, Convert]:
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        key, convert_key = _of_value(inner.fields_by_name["key"])
        value, convert_value = _of_value(inner.fields_by_name["value"])
        return MapType(key, value, valueContainsNull=False), lambda values: {
            convert_key(name): convert_value(each) for name, each in values.items()
        }
    kind, convert = _of_value(field)
    if not _is_repeated(field):
        return kind, convert
    return ArrayType(kind, containsNull=False), lambda values: [convert(each) for each in values]


def _of_value(field: FieldDescriptor) -> tuple[DataType, Convert]:
    if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        return _of_message(field.message_type)
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        names = field.enum_type.values_by_number
        # Java names unknown enum values like this.
        unknown = f"UNKNOWN_ENUM_VALUE_{field.enum_type.name}_"
        return StringType(), lambda number: names[number].name if number in names else f"{unknown}{number}"
    if field.type == FieldDescriptor.TYPE_BYTES:
        return BinaryType(), bytes
    return _SCALARS[field.cpp_type]


def _is_repeated(field: Any) -> bool:
    # Older versions of the library have only the label.
    is_repeated = getattr(field, "is_repeated", None)
    return bool(field.label == field.LABEL_REPEATED if is_repeated is None else is_repeated)
