"""Tasks with any mixture of keys, outcomes, delays and options: invariants for every handler."""

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from confluent_kafka import Message
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import Record, Reject, Retry, Skip
from penstock.core.reports.record_counts import Counts
from spark_tasks import RealTask, declare, source

OUTCOMES = st.sampled_from(["done", "output", "skip", "reject", "once", "twice", "always"])
RECORDS = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"c", b"d", None]), OUTCOMES, st.sampled_from([0, 0, 0, 0.0005, 0.002])),
    max_size=60,
)


@settings(max_examples=60)
@given(
    records=RECORDS,
    sizes=st.lists(st.integers(0, 20), min_size=1, max_size=5),
    order=st.sampled_from(["partition", "key", "none"]),
    null_keys_in_order=st.booleans(),
    concurrency=st.sampled_from([1, 2, 7]),
    max_in_flight=st.sampled_from([2, 5, 10_000]),
    batch=st.sampled_from([None, None, 1, 2]),
    is_async=st.booleans(),
)
def test_each_record_ends_once_lanes_keep_their_order_and_bounds_hold(
    records: list[tuple[bytes | None, str, float]],
    sizes: list[int],
    order: str,
    null_keys_in_order: bool,  # noqa: FBT001
    concurrency: int,
    max_in_flight: int,
    batch: int | None,
    is_async: bool,  # noqa: FBT001
) -> None:
    story = Story(records)
    options = {
        "to": "out", "dead_letter": "dlq", "order": order, "null_keys_in_order": null_keys_in_order,
        "concurrency": concurrency, "max_in_flight": max_in_flight, "batch": batch, "linger": "1ms",
        "retry": Retry(attempts=3, first="1ms", jitter=1),
    }  # fmt: skip
    task = RealTask(
        declare(story.handler(in_batches=batch is not None, is_async=is_async), **options), *story.batches(sizes)
    )

    expected: dict[str, list[int]] = defaultdict(list)
    for offset, (_, outcome, _) in enumerate(records):
        expected[{"once": "output", "twice": "output", "always": "reject"}.get(outcome, outcome)].append(offset)
    assert sorted(int(row["value"]) for row in task.rows if row["topic"] == "out") == expected["output"]
    assert sorted(int(row["value"]) for row in task.rows if row["topic"] == "dlq") == expected["reject"]
    assert task.counts == Counts(
        read=len(records),
        written=len(expected["output"]),
        dead_lettered=len(expected["reject"]),
        skipped=len(expected["skip"]),
    )
    attempts = {"once": 2, "twice": 3, "always": 3}
    for offset, (_, outcome, _) in enumerate(records):
        numbers = [number for tried, number in story.attempts if tried == offset]
        assert numbers == list(range(1, attempts.get(outcome, 1) + 1))
    if not batch:
        assert story.most <= min(concurrency, max_in_flight)
        for lane in story.lanes(order, null_keys_in_order=null_keys_in_order):
            tried = [offset for offset, _ in story.attempts if offset in lane]
            assert tried == sorted(tried), "one after the other, with all its attempts"
            # A task writes the outputs of several records before their dead letters: each topic has its own order.
            for topic in ("out", "dlq"):
                rows = [int(row["value"]) for row in task.rows if row["topic"] == topic and int(row["value"]) in lane]
                assert rows == sorted(rows)


class Story:
    """What the handler must do with each record, and what it did."""

    def __init__(self, records: list[tuple[bytes | None, str, float]]) -> None:
        self._records = records
        self._lock = threading.Lock()
        self._now = 0
        self.most = 0
        self.attempts: list[tuple[int, int]] = []

    def batches(self, sizes: list[int]) -> list[list[Message]]:
        whole = source(*(b"%d" % n for n in range(len(self._records))), keys=[key for key, _, _ in self._records])
        cuts = [0, *(min(sum(sizes[:n]), len(whole)) for n in range(1, len(sizes) + 1)), len(whole)]
        return [whole[start:end] for start, end in pairwise(cuts)]

    def lanes(self, order: str, *, null_keys_in_order: bool) -> list[set[int]]:
        found: dict[object, set[int]] = defaultdict(set)
        for offset, (key, _, _) in enumerate(self._records):
            alone = order == "none" or (order == "key" and key is None and not null_keys_in_order)
            found[offset if alone else "all" if order == "partition" else key].add(offset)
        return [*found.values()]

    def handler(self, *, in_batches: bool, is_async: bool) -> Callable[..., Any]:
        def handle(record: Record) -> int | None:
            time.sleep(self._begin(record))
            return self._end(record)

        async def handle_async(record: Record) -> int | None:
            await asyncio.sleep(self._begin(record))
            return self._end(record)

        def handle_batch(records: list[Record]) -> list[int | Exception | None]:
            time.sleep(max(map(self._begin, records)))
            return list(map(self._result, records))

        async def handle_batch_async(records: list[Record]) -> list[int | Exception | None]:
            await asyncio.sleep(max(map(self._begin, records)))
            return list(map(self._result, records))

        if in_batches:
            return handle_batch_async if is_async else handle_batch
        return handle_async if is_async else handle

    def _begin(self, record: Record) -> float:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
            self.attempts.append((record.offset, record.attempt))
        return self._records[record.offset][2]

    def _end(self, record: Record) -> int | None:
        with self._lock:
            self._now -= 1
        outcome = self._records[record.offset][1]
        if outcome == "skip":
            raise Skip
        if outcome == "reject":
            raise Reject("never")
        if outcome == "always" or record.attempt < {"once": 2, "twice": 3}.get(outcome, 0):
            raise OSError("away")
        return None if outcome == "done" else record.offset

    def _result(self, record: Record) -> int | Exception | None:
        try:
            return self._end(record)
        except Exception as error:  # noqa: BLE001 - one outcome for each
            return error
