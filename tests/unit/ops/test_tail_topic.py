"""The last records of partitions in which not every offset has one."""

from collections.abc import Iterator, Mapping

from hypothesis import given
from hypothesis import strategies as st

from penstock.core.records.record import Record, TopicPartition
from penstock.kafka.admin.log_bounds import Bounds
from penstock.ops.tail_topic import last_records


class Log:
    """A topic whose partitions have records at these offsets only."""

    def __init__(self, *partitions: set[int]) -> None:
        self._partitions = partitions
        self.reads = 0

    def __call__(self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> Iterator[Record]:
        self.reads += 1
        for (topic, number), start in starts.items():
            for offset in sorted(self._partitions[number]):
                if start <= offset < ends[topic, number]:
                    yield Record(topic, number, offset, None, None)


def offsets(found: list[Record]) -> list[tuple[int, int]]:
    return sorted((record.partition, record.offset) for record in found)


def test_a_marker_at_the_end_does_not_hide_the_last_record() -> None:
    log = Log({0, 1, 2, 4})
    assert offsets(last_records({("t", 0): Bounds(0, 6)}, 1, read=log)) == [(0, 4)]


def test_one_read_is_enough_if_every_offset_has_a_record() -> None:
    log = Log(set(range(100)), set(range(3)))
    found = last_records({("t", 0): Bounds(0, 100), ("t", 1): Bounds(0, 3)}, 5, read=log)
    assert offsets(found) == [*((0, offset) for offset in range(95, 100)), (1, 0), (1, 1), (1, 2)]
    assert log.reads == 1


@given(st.sets(st.integers(0, 300)), st.integers(0, 50), st.integers(1, 20))
def test_the_last_ones_are_found_whatever_gaps_there_are(there: set[int], start: int, count: int) -> None:
    there = {offset for offset in there if offset >= start}
    found = [offset for _, offset in offsets(last_records({("t", 0): Bounds(start, 301)}, count, read=Log(there)))]
    assert found[-count:] == sorted(there)[-count:]
    assert len(found) == len(set(found))
