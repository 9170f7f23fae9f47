"""How much may be in flight: records, and the bytes of their values."""

import pytest

from dispatch_helpers import make_dispatch
from penstock import Record
from penstock.core.failures.outcome import DONE
from penstock.core.scheduling.in_flight import DEFAULT_BYTES, HandedOver, InFlight, client_bytes

TP, OTHER = ("orders", 0), ("orders", 1)


class Fetching:
    """A fetcher that delivers values of these sizes, as many as there is room for."""

    def __init__(self, *, max_in_flight: int, max_bytes: int) -> None:
        self.bounds = InFlight(max_in_flight, max_bytes)
        self.dispatch = make_dispatch(
            order="none", concurrency=100, max_in_flight=max_in_flight, max_in_flight_bytes=max_bytes
        )
        self.handed_over = HandedOver()
        self.next = 0
        self.bytes = 0
        self.dispatch.assign(TP, 0)

    def room(self, *, much: bool = False) -> int:
        return self.dispatch.in_flight.room(self.handed_over, much=much)

    def fetch(self, size: int, most: int = 1_000_000) -> int:
        """One by one, as if the size of the next value were unknown."""
        count = 0
        while count < most and self.room() > 1:
            record = Record(*TP, self.next, None, bytes(size))
            excesses = self.bounds.excesses(
                [record], offset_of=lambda each: each.offset, size_of=lambda each: len(each.value)
            )
            self.handed_over.add(1, excesses.values())
            self.dispatch.deliver(TP, [record], excesses)
            self.dispatch.in_flight.received(sum(excesses.values()))
            self.next, count = self.next + 1, count + 1
        return count


def test_small_values_are_bounded_by_their_number_alone() -> None:
    fetching = Fetching(max_in_flight=100, max_bytes=1_000_000)
    assert fetching.fetch(size=fetching.bounds.small) == 99, "a fetcher keeps one place back"
    assert fetching.handed_over.excess == 0


def test_large_values_stay_within_the_bytes() -> None:
    fetching = Fetching(max_in_flight=1_000, max_bytes=8_000_000)
    bounds = fetching.bounds
    assert sum(client_bytes(8_000_000)) + bounds.max_bytes == 8_000_000, "the client's buffer is counted"
    count = fetching.fetch(size=900_000)
    assert bounds.max_bytes - 900_000 < count * 900_000 < bounds.max_bytes + 900_000


@pytest.mark.parametrize("max_bytes", [1, 1_000, 800_000])
def test_a_value_larger_than_all_bytes_gets_through_alone(max_bytes: int) -> None:
    fetching = Fetching(max_in_flight=10, max_bytes=max_bytes)
    for _ in range(3):
        assert fetching.fetch(size=900_000) == 1
        [bundle] = fetching.dispatch.take(0.0, 1)
        fetching.dispatch.report([(bundle[0], [DONE], True)], 0.0)
        fetching.dispatch.release()


def test_after_all_bytes_were_taken_more_comes_in_when_a_quarter_is_free() -> None:
    fetching = Fetching(max_in_flight=1_000, max_bytes=8_000_000)
    count = fetching.fetch(size=100_000)
    runs = [bundle[0] for bundle in fetching.dispatch.take(0.0, 1)]
    assert len(runs) == count
    finished = 0
    while not fetching.room(much=True):
        fetching.dispatch.report([(runs[finished], [DONE], True)], 0.0)
        finished += 1
    assert count / 5 < finished <= count / 3


def test_values_on_their_way_to_the_dispatcher_count() -> None:
    fetching = Fetching(max_in_flight=10, max_bytes=1_000)
    fetching.handed_over.add(1, [5_000])
    assert fetching.room() == 0
    fetching.dispatch.in_flight.settled += 1  # it was dropped
    fetching.dispatch.in_flight.received(5_000)
    assert fetching.room() > 1


def test_a_poll_asks_for_no_more_than_fit_if_they_are_as_large_as_the_last_ones() -> None:
    bounds = InFlight(1_000, DEFAULT_BYTES)
    assert bounds.room(0, 0, largest=0) == 1_000
    assert bounds.room(0, 0, largest=900_000) <= DEFAULT_BYTES // 900_000


def test_a_partition_with_large_values_drops_records_that_others_need_room_for() -> None:
    fetching = Fetching(max_in_flight=1_000, max_bytes=8_000_000)
    dispatch = fetching.dispatch
    dispatch.assign(OTHER, 0)
    fetching.fetch(size=100_000)
    before = dispatch.epochs[0].large_values.excess
    assert not any(dispatch.balance(0.0))
    [pause], _ = dispatch.balance(10.0)
    assert pause.epoch.tp == TP
    assert pause.rewind_to is not None
    assert dispatch.epochs[0].large_values.excess <= fetching.bounds.max_bytes / 2 < before
    assert fetching.room() > 1


def test_a_partition_that_is_alone_gives_nothing_back() -> None:
    fetching = Fetching(max_in_flight=1_000, max_bytes=8_000_000)
    fetching.fetch(size=7_000_000)
    fetching.dispatch.balance(0.0)
    assert not any(fetching.dispatch.balance(10.0))
