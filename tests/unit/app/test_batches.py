"""Batches: one call, and still one outcome for each record."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from penstock import App, Record, Reject, Skip
from penstock.app import batch_attempts, batch_attempts_async
from penstock.core.failures.outcome import DONE, HELD, Done, Failed, Outcome, ProducerRecord, Skipped
from penstock.errors import ConfigError


def records(*values: bytes) -> list[Record]:
    return [Record("numbers", 0, offset, b"k", value) for offset, value in enumerate(values)]


def attempt(function: Callable[..., Any], *values: bytes, **options: Any) -> list[Outcome]:
    app = App("shop")
    app.consume("numbers", batch=10, **options)(function)
    return batch_attempts(app.handlers[0])(records(*values), [1] * len(values))


def test_none_means_that_all_are_done() -> None:
    seen = []

    def handle(values: list[int]) -> None:
        seen.append(values)

    assert attempt(handle, b"1", b"2") == [DONE, DONE]
    assert seen == [[1, 2]]


def test_a_list_has_one_result_for_each_record() -> None:
    def handle(values: list[int]) -> list[Any]:
        return [None, {"n": values[1]}, Skip("seen"), Reject("never"), OSError("away"), object()]

    outcomes = attempt(handle, *[b"7"] * 6, to="out")
    assert outcomes[:5] == [
        DONE,
        Done(ProducerRecord("out", b"k", b'{"n":7}')),
        Skipped("seen"),
        Failed("Reject", "never", final=True),
        Failed("OSError", "away"),
    ]
    assert isinstance(outcomes[5], Failed)
    assert outcomes[5].halts, "a result that cannot be encoded is a bug of the handler"


def test_one_that_cannot_be_decoded_fails_alone_and_is_not_handed_over() -> None:
    seen: list[int] = []

    def handle(values: list[int], records: list[Record]) -> None:
        seen.extend(values)
        assert [record.offset for record in records] == [0, 2]

    first, bad, last = attempt(handle, b"1", b"x", b"3")
    assert (first, last, seen) == (DONE, DONE, [1, 3])
    assert isinstance(bad, Failed)
    assert bad.final
    (alone,) = attempt(handle, b"x")
    assert isinstance(alone, Failed)


def test_if_a_batch_handler_raises_each_record_is_attempted_alone_and_only_the_poison_fails() -> None:
    calls = []

    def handle(values: list[int]) -> None:
        calls.append(values)
        if 2 in values:
            raise ValueError("two")

    assert attempt(handle, b"1", b"2", b"3") == [DONE, Failed("ValueError", "two"), DONE]
    assert calls == [[1, 2, 3], [1], [2], [3]]


def test_a_wrong_number_of_results_is_no_result() -> None:
    def too_few(values: list[int]) -> list[None]:
        return [None] * (len(values) - 1)

    def no_list(values: list[int]) -> str:
        return str(values)

    outcomes = attempt(too_few, b"1", b"2", to="out")
    bug = Failed("HandlerBug", "the handler returned 1 result for 2 records", final=True, halts=True)
    assert outcomes == [bug] * 2
    (outcome,) = attempt(no_list, b"1", to="out")
    assert outcome == Failed("HandlerBug", "the handler returned str for 1 record", final=True, halts=True)


def test_async_batches_do_the_same() -> None:
    app = App("shop")

    @app.consume("numbers", batch=10)
    async def handle(values: list[int]) -> None:
        if 2 in values:
            raise Skip("two")

    call = batch_attempts_async(app.handlers[0])

    async def attempt_them() -> list[Outcome]:
        return await call(records(b"1", b"2", b"x"), [1, 1, 1])

    one, two, bad = asyncio.run(attempt_them())
    assert (one, two) == (DONE, Skipped("two"))
    assert isinstance(bad, Failed)


def test_with_manual_commits_what_is_handled_is_held() -> None:
    def handle(records: list[Record]) -> None: ...

    assert attempt(handle, b"1", commit="manual") == [HELD]


def takes_three(one: list[int], two: list[int], three: list[int]) -> None: ...


def takes_one_value(value: int) -> None: ...


@pytest.mark.parametrize("function", [takes_three, takes_one_value])
def test_a_batch_handler_takes_lists(function: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match="list"):
        App("shop").consume("numbers", batch=10)(function)
