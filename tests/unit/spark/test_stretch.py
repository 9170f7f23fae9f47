"""The records of a task: of one partition, in order, and only those that do not count already."""

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import StateError
from penstock.spark.stretch import Stretch


def rows(*offsets: int, topic: str = "orders", partition: int = 2) -> pa.RecordBatch:
    count = len(offsets)
    return pa.RecordBatch.from_pydict(
        {
            "topic": pa.array([topic] * count, pa.string()),
            "partition": pa.array([partition] * count, pa.int32()),
            "offset": pa.array(offsets, pa.int64()),
        }
    )


def offsets(batches: list[pa.RecordBatch]) -> list[int]:
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]


def test_a_task_without_records_is_of_no_place() -> None:
    for batches in ([], [rows()], [rows(), rows()]):
        stretch = Stretch(batches)
        assert stretch.tp is None
        assert list(stretch.above(0)) == []
        assert stretch.end == 0


def test_it_names_its_place_before_anything_is_read_and_its_end_after() -> None:
    stretch = Stretch([rows(), rows(3, 5), rows(9)])
    assert stretch.tp == ("orders", 2)
    assert offsets(list(stretch.above(0))) == [3, 5, 9]
    assert stretch.end == 10


@given(st.lists(st.integers(0, 50), unique=True), st.integers(0, 60), st.lists(st.integers(0, 50)))
def test_what_lies_below_the_marker_is_dropped_wherever_batches_are_cut(
    numbers: list[int], marker: int, cuts: list[int]
) -> None:
    numbers.sort()
    borders = [0, *sorted(min(cut, len(numbers)) for cut in cuts), len(numbers)]
    stretch = Stretch([rows(*numbers[start:end]) for start, end in pairwise(borders)])
    fresh = [number for number in numbers if number >= marker]
    given_out = list(stretch.above(marker))
    assert offsets(given_out) == fresh
    assert all(len(batch) for batch in given_out)
    assert stretch.end == (numbers[-1] + 1 if numbers else 0)


@pytest.mark.parametrize(
    "batches",
    [
        [rows(1, 2), rows(3, partition=3)],
        [rows(1, 2), rows(3, topic="returns")],
        [pa.concat_batches([rows(1), rows(2, partition=3)])],
        [rows(2, 1)],
        [rows(1, 1)],
        [rows(1, 2), rows(2, 3)],
        [rows(5, 6), rows(1, 2)],
    ],
    ids=["partitions", "topics", "mixed", "falling", "twice", "overlap", "swapped"],
)
def test_anything_else_is_refused_even_below_the_marker(batches: list[pa.RecordBatch]) -> None:
    for marker in (0, 100):
        with pytest.raises(StateError, match="one partition a task") as caught:
            list(Stretch(batches).above(marker))
        assert "minPartitions" in caught.value.hint
