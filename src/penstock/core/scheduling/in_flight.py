"""How much may be delivered and unfinished: records, and the bytes of their values."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from penstock.core.scheduling.lanes import AnyRecord

DEFAULT_BYTES = 256_000_000
"""Of a member, with what its client has fetched ahead."""

# What the client itself may hold at most: its queue, and an answer of the broker on its way there.
_QUEUE_BYTES, _ANSWER_BYTES = 4_194_304, 16_777_216
# And at most so large a part of all bytes each.
_CLIENT_PART = 8
# After everything was taken, so large a part must be free before more comes in.
_ROOMY_PART = 4


def client_bytes(max_bytes: int) -> tuple[int, int]:
    """Of so many bytes in all, what the client may queue, and what one answer of a broker may bring."""
    most = max(1, max_bytes // _CLIENT_PART)
    return min(_QUEUE_BYTES, most), min(_ANSWER_BYTES, most)


@dataclass(slots=True)
class HandedOver:
    """What a fetcher has handed over so far; only the fetcher writes it."""

    records: int = 0
    excess: int = 0
    largest: int = 0  # the largest excess among those that came last

    def add(self, records: int, excesses: Iterable[int]) -> None:
        excesses = [*excesses]
        self.records += records
        self.excess += sum(excesses)
        self.largest = max(excesses, default=0)


class InFlight:
    """The bounds of one member.

    Values of up to ``small`` bytes are not looked at one by one: each counts as so many bytes, and ``max_records`` of
    them take half of the bytes at most. What a larger value has beyond that is its excess, and is counted.
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
        """Of large values, by offset; nearly always there are none."""
        small = self.small
        if not records or max(map(size_of, records)) <= small:
            return {}
        return {offset_of(record): size - small for record in records if (size := size_of(record)) > small}

    def bytes_of(self, records: int, excess: int) -> int:
        return records * self.small + excess

    def room(self, records: int, excess: int, *, largest: int) -> int:
        """How many more records may come in, with so much in flight, if they are as large as the last ones.

        Where bytes are left, that is two at least: a fetcher keeps one place back, and a record that is larger than all
        bytes together has to get through, too.
        """
        left = self.max_bytes - self.bytes_of(records, excess)
        if left <= 0:
            return 0
        return min(self.max_records - records, max(2, left // max(1, self.small + largest)))

    def is_roomy(self, records: int, excess: int) -> bool:
        """Whether a good part of records and bytes is free."""
        free = self.max_bytes - self.bytes_of(records, excess)
        return self.max_records - records > self.max_records // _ROOMY_PART and free >= self.max_bytes // _ROOMY_PART
