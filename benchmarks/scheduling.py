"""The dispatcher's rules alone, without Kafka and threads: python benchmarks/scheduling.py.

A round delivers, takes and reports the records of eight partitions. Printed is the CPU time for each record, the best
and the median of 25 rounds. ``key, lanes by key only`` shows what mixed lanes gain (docs/internals/dispatching.md).
"""

import gc
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from penstock.core.failures.outcome import DONE
from penstock.core.records.record import Record, TopicPartition
from penstock.core.scheduling import schedule
from penstock.core.scheduling.dispatch import Dispatch
from penstock.core.scheduling.in_flight import DEFAULT_BYTES, InFlight
from penstock.core.scheduling.lanes import Order

ROUNDS = 25
PARTITIONS = 8
RECORDS = 2_000  # of each partition
FETCHED = 1_000  # arrive together
CASES: tuple[tuple[Order, int, bool], ...] = (
    ("partition", 1_000, True),
    ("none", 1_000, True),
    ("key", 1_000, True),
    ("key", 1_000, False),
    ("key", 50, True),
    ("key", 1, True),
)


@contextmanager
def lanes_by_key_only() -> Iterator[None]:
    with patch.object(schedule, "QUICK", 1_000_000):
        yield


def one_round(order: Order, bundle: int, keys: int) -> float:
    """Return the CPU time of each record, in microseconds."""
    dispatch = Dispatch(
        order=order,
        concurrency=16,
        in_flight=InFlight(2 * PARTITIONS * FETCHED, DEFAULT_BYTES),
        dead_letter_of=None,
        random=lambda: 0.5,
    )
    tps: list[TopicPartition] = [("orders", number) for number in range(PARTITIONS)]
    for tp in tps:
        dispatch.assign(tp, 0)
    logs = {tp: [Record(*tp, n, b"%d" % (n * 7_919 % keys), b"") for n in range(RECORDS)] for tp in tps}
    gc.collect()
    gc.disable()
    began = time.process_time()
    for first in range(0, RECORDS, FETCHED):
        for tp in tps:
            dispatch.deliver(tp, logs[tp][first : first + FETCHED])
        while bundles := dispatch.take(0.0, bundle):
            results = []
            for runs in bundles:
                dispatch.release()
                results += [(run, [DONE] * len(run.records), True) for run in runs]
            dispatch.report(results, 0.0)
        dispatch.commits()
    seconds = time.process_time() - began
    gc.enable()
    return seconds / (PARTITIONS * RECORDS) * 1e6


def main() -> None:
    for keys in (100, 10_000):
        for order, bundle, mixes in CASES:
            if mixes:
                found = [one_round(order, bundle, keys) for _ in range(ROUNDS)]
            else:
                with lanes_by_key_only():
                    found = [one_round(order, bundle, keys) for _ in range(ROUNDS)]
            name = order if mixes else f"{order}, lanes by key only"
            figures = f"best {min(found):6.2f} us, median {statistics.median(found):6.2f} us"
            print(f"{keys:6,} keys  bundles of {bundle:5,}  {figures}  order: {name}")


if __name__ == "__main__":
    main()
