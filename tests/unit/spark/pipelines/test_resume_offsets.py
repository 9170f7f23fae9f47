"""Offsets in the form that Spark writes into a checkpoint."""

import pytest

from penstock.spark.pipelines.resume_offsets import EARLIEST, Offsets, from_json, to_json


def test_offsets_are_written_as_spark_reads_them() -> None:
    offsets: Offsets = {("orders", 10): 7, ("orders", 2): EARLIEST, ("returns", 0): 0}
    assert to_json(offsets) == '{"orders": {"2": -2, "10": 7}, "returns": {"0": 0}}'
    assert from_json(to_json(offsets)) == offsets


@pytest.mark.parametrize("text", ["", "{", "[]", '{"orders": 5}', '{"orders": {"x": 1}}', '{"orders": {"0": null}}'])
def test_what_spark_never_writes_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any text will do
        from_json(text)
