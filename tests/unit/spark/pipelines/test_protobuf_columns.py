"""Unsigned numbers of Protobuf stay positive in columns, with and without the package spark-protobuf."""

from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from google.protobuf.wrappers_pb2 import UInt32Value, UInt64Value
from pyspark.sql.types import DataType, DecimalType, LongType, StructType

from penstock.spark.pipelines import format_columns, protobuf_columns


@pytest.mark.parametrize(
    ("message", "kind", "number"),
    [
        (UInt32Value(value=2**32 - 1), LongType(), 2**32 - 1),
        (UInt64Value(value=2**64 - 1), DecimalType(20, 0), Decimal(2**64 - 1)),
    ],
)
def test_python_reads_large_unsigned_numbers_as_positive(message: Any, kind: DataType, number: Any) -> None:
    found, convert = protobuf_columns._of_message(message.DESCRIPTOR)
    assert isinstance(found, StructType)
    assert (found["value"].dataType, convert(message)) == (kind, (number,))


def test_spark_is_asked_for_positive_numbers_and_for_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, str] = {}
    monkeypatch.setattr(protobuf_columns, "spark_has_protobuf", lambda: True)
    monkeypatch.setattr(format_columns, "from_protobuf", lambda *_, **named: options.update(named["options"]))
    unused: Any = SimpleNamespace(files=b"")
    format_columns._protobuf(unused, "Order", unused)
    assert (options["upcast.unsigned.ints"], options["emit.default.values"]) == ("true", "true")
