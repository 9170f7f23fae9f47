"""Handlers that take a value and return an output or nothing: their records are attempted many in one loop."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock import Out, Record, Reject, Retry, Skip
from penstock.app import Handler
from penstock.app.attempts.plain_outputs import is_plain
from penstock.core.reports.record_counts import Counts
from penstock.errors import HandlerError
from spark_tasks import Task, declare, source

KINDS = ["output", "output", "output", "none", "skip", "out", "once", "reject", "undecodable"]
FINAL = {"once": "output", "undecodable": "reject"}


@settings(max_examples=100)
@given(
    kinds=st.lists(st.sampled_from(KINDS), max_size=40),
    keys=st.lists(st.sampled_from([b"a", b"b", None]), min_size=40, max_size=40),
    order=st.sampled_from(["partition", "key", "none"]),
    sizes=st.lists(st.integers(1, 20), min_size=1, max_size=5),
)
@example(kinds=["output", "output", "out", "output"], keys=[b"a"] * 4, order="partition", sizes=[4])
def test_each_output_is_written_once_and_in_the_order_of_its_lane(
    kinds: list[str], keys: list[bytes | None], order: str, sizes: list[int]
) -> None:
    attempts: dict[int, int] = defaultdict(int)

    def handle(value: int) -> int | Out | None:
        attempts[value] += 1
        return result(value, kinds[value], attempts[value])

    options: dict[str, Any] = {"to": "out", "dead_letter": "dlq", "order": order, "concurrency": 1}
    handler = declare(handle, retry=Retry(attempts=2, first="1ms"), **options)
    task = Task(handler, *batches(kinds, keys, sizes))

    ends = defaultdict(list)
    for number, kind in enumerate(kinds):
        ends[FINAL.get(kind, kind)].append(number)
    outputs = [int(row["value"]) for row in task.rows if row["topic"] == "out"]
    assert sorted(outputs) == sorted(ends["output"] + ends["out"])
    letters = [row["value"] for row in task.rows if row["topic"] == "dlq"]
    assert sorted(letters) == sorted(value_of(number, kinds[number]) for number in ends["reject"])
    assert task.counts == Counts(
        read=len(kinds), written=len(outputs), dead_lettered=len(letters), skipped=len(ends["skip"])
    )
    assert attempts == {
        number: 2 if kind == "once" else 1 for number, kind in enumerate(kinds) if kind != "undecodable"
    }
    if order == "partition":
        assert outputs == sorted(outputs)
    if order == "key":
        for key in (b"a", b"b"):
            of_key = [number for number in outputs if keys[number] == key]
            assert of_key == sorted(of_key)


def result(value: int, kind: str, attempt: int) -> int | Out | None:
    match kind:
        case "none":
            return None
        case "skip":
            raise Skip("not wanted")
        case "out":
            return Out(value)
        case "reject":
            raise Reject("bad")
        case "once" if attempt == 1:
            raise OSError("not now")
    return value


def value_of(number: int, kind: str) -> bytes:
    return b"[%d" % number if kind == "undecodable" else b"%d" % number


def batches(kinds: Sequence[str], keys: Sequence[bytes | None], sizes: Sequence[int]) -> list[list[Any]]:
    """The records, in batches of these sizes, again and again."""
    found: list[list[Any]] = []
    first = 0
    while first < len(kinds):
        size = sizes[len(found) % len(sizes)]
        part = kinds[first : first + size]
        values = [value_of(first + index, kind) for index, kind in enumerate(part)]
        found.append(source(*values, first=first, keys=keys[first : first + size]))
        first += size
    return found


def test_an_output_that_cannot_be_encoded_stops_the_app_at_its_record() -> None:
    def handle(value: int) -> object:
        return object() if value == 2 else value

    with pytest.raises(HandlerError, match=r"failed on orders\[2\]@2, attempt 1: HandlerBug: .* cannot be encoded"):
        Task(declare(handle, to="out", dead_letter="dlq"), source(b"0", b"1", b"2", b"3"))


def test_a_handler_that_needs_more_than_the_value_is_called_record_by_record() -> None:
    def plain(value: int) -> int:
        return value

    def with_record(value: int, record: Record) -> int:
        return value

    def several(value: int) -> list[Out]:
        return [Out(value)]

    def in_batches(values: list[int]) -> list[int]:
        return values

    async def awaited(value: int) -> int:
        return value

    def of(function: Any, **options: Any) -> Handler:
        return declare(function, to="out", **options)

    assert is_plain(of(plain))
    assert is_plain(declare(lambda value: None))
    others = [
        of(with_record),
        of(several),
        of(in_batches, batch=10),
        of(awaited),
        of(plain, carry_headers=True),
        of(plain, honor_times=True),
        of(plain, retry_topics=["1m"], dead_letter="dlq"),
        of(plain, tracing=True),
    ]
    assert not any(map(is_plain, others))
