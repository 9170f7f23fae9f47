"""How much may be in flight (fetched and not finished): records, and the bytes of their values."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from penstock.core.scheduling.lanes import AnyRecord

DEFAULT_BYTES = 256_000_000
"""The default of ``max_in_flight_bytes`` for one member. It includes what the Kafka client has fetched ahead."""

# The most that the Kafka client itself holds: its queue, and one fetch response that is being received.
_QUEUE_BYTES, _RESPONSE_BYTES = 4_194_304, 16_777_216
# Each of the two takes at most 1/8 of max_in_flight_bytes.
_CLIENT_PART = 8
# After the limit was reached, 1/4 must be free before the fetcher fetches more.
_ROOMY_PART = 4


def client_bytes(max_bytes: int) -> tuple[int, int]:
    """Divide ``max_bytes``: what the client may queue, and how large one fetch response may be."""
    most = max(1, max_bytes // _CLIENT_PART)
    return min(_QUEUE_BYTES, most), min(_RESPONSE_BYTES, most)


@dataclass(slots=True)
class HandedOver:
    """Totals of what the fetcher has handed to the dispatcher; only the fetcher writes them."""

    records: int = 0
    excess: int = 0
    largest: int = 0  # the largest excess in the last handover

    def add_small(self) -> None:
        """As ``add``, for a single record whose value is not large."""
        self.records += 1
        self.largest = 0

    def add(self, records: int, excesses: Iterable[int]) -> None:
        excesses = [*excesses]
        self.records += records
        self.excess += sum(excesses)
        self.largest = max(excesses) if excesses else 0


class InFlight:
    """The limits of one member.

    Weighing each value would cost more than a no-op handler. So each record counts as ``small`` bytes, where
    ``max_records`` small records take half of the bytes. Only what a larger value has above ``small``, its excess, is
    counted record by record.
    """

    def __init__(self, max_records: int, max_bytes: int) -> None:
        self.max_records = max_records
        self.max_bytes = max(1, max_bytes - sum(client_bytes(max_bytes)))
        self.small = self.max_bytes // (2 * max_records)

    def excesses(
        self,
        records: Sequence[AnyRecord],
        *,
        offset_of: Callable[[AnyRecord], int],
        size_of: Callable[[AnyRecord], int],
    ) -> dict[int, int]:
        """The excess of each large value, by offset. Nearly always there is none."""
        small = self.small
        if not records or max(map(size_of, records)) <= small:
            return {}
        return {offset_of(record): size - small for record in records if (size := size_of(record)) > small}

    def bytes_of(self, records: int, excess: int) -> int:
        return records * self.small + excess

    def room(self, records: int, excess: int, *, largest: int) -> int:
        """How many more records may be fetched, assuming that each is as large as the largest of the last handover.

        While any bytes are left, the answer is at least two: the fetcher keeps one slot in reserve, and a record that
        is larger than the whole limit must still get through.
        """
        left = self.max_bytes - self.bytes_of(records, excess)
        if left <= 0:
            return 0
        return min(self.max_records - records, max(2, left // max(1, self.small + largest)))

    def are_half_used(self, records: int, excess: int) -> bool:
        """Whether these records take at least half of the records or of the bytes."""
        return 2 * records >= self.max_records or 2 * self.bytes_of(records, excess) >= self.max_bytes

    def is_roomy(self, records: int, excess: int) -> bool:
        """Whether at least a quarter of the records and of the bytes is free."""
        free = self.max_bytes - self.bytes_of(records, excess)
        return self.max_records - records > self.max_records // _ROOMY_PART and free >= self.max_bytes // _ROOMY_PART


class InFlightCount:
    """What one member has in flight.

    The dispatcher's thread changes it, when records arrive, are finished or are dropped; the fetcher's thread reads it.
    """

    def __init__(self, limits: InFlight) -> None:
        self.limits = limits
        self.delivered = 0
        """How many records were delivered."""
        self.settled = 0
        """How many delivered records are no longer in flight: finished, or dropped."""
        self.excess = 0
        """The excess of all large values in flight here."""
        self._excess_received = 0  # the excess of all large values that ever arrived here

    def dropped(self, records: int) -> None:
        """So many records were not delivered after all."""
        self.delivered += records
        self.settled += records

    @property
    def unfinished(self) -> int:
        """How many records are in flight here; those on their way from the fetcher are not delivered yet."""
        return self.delivered - self.settled

    @property
    def are_half_used(self) -> bool:
        """Whether at least half of the records or of the bytes are in flight here."""
        return self.limits.are_half_used(self.delivered - self.settled, self.excess)

    def received(self, excess: int) -> None:
        """Large values with this total excess have arrived; they are delivered or dropped by now."""
        self._excess_received += excess

    def room(self, delivered: HandedOver, *, much: bool = False) -> int:
        """How many more records the fetcher may hand over; with ``much``, 0 unless at least a quarter is free.

        The fetcher calls it on its own thread. ``_excess_received`` is read before ``excess``: if large values arrive
        in between, they are counted twice, which is safe; in the other order they would not be counted at all.
        """
        on_their_way = delivered.excess - self._excess_received
        records, excess = delivered.records - self.settled, on_their_way + self.excess
        if much and not self.limits.is_roomy(records, excess):
            return 0
        return self.limits.room(records, excess, largest=delivered.largest)
