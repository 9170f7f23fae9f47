"""Attempts of a route group: which route gets a record, and what its outcome says."""

import asyncio
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from penstock import App, HandlerBug, Record, Reject, Retry, Skip, key_like
from penstock.app import attempts, attempts_async, batch_attempts, batch_attempts_async
from penstock.core.failures.outcome import DONE, Done, Failed, Outcome, ProducerRecord, Skipped

CREATED, CANCELLED = {"type": "created"}, {"type": ["cancelled", "expired"]}


def record(value: bytes = b"1", *, key: bytes | None = None, **headers: bytes | None) -> Record:
    return Record("orders", 0, 0, key, value, tuple(headers.items()))


class Shop:
    """An app whose handlers note what they get."""

    def __init__(self, **options: Any) -> None:
        self.app = App("shop")
        self.options = options
        self.got: list[tuple[str, Any]] = []

    def handler(self, name: str, does: Callable[[Any], Any] = lambda _: None, **options: Any) -> "Shop":
        def handle(value: int) -> Any:
            self.got.append((name, value))
            return does(value)

        handle.__name__ = name
        self.app.consume("orders", **self.options, **options)(handle)
        return self

    def attempt(self, *records: Record) -> list[Outcome]:
        attempt = attempts(self.app.handlers[0])
        return [attempt(each, 1) for each in records]


def failing(_value: Any) -> None:
    raise OSError("away")


def test_the_first_route_whose_condition_holds_gets_the_record() -> None:
    shop = Shop().handler("create", when=CREATED).handler("cancel", when=CANCELLED).handler("rest")
    outcomes = shop.attempt(
        record(b"1", type=b"created"), record(b"2", type=b"expired"), record(b"3"), record(b"4", type=None)
    )
    assert shop.got == [("create", 1), ("cancel", 2), ("rest", 3), ("rest", 4)]
    assert [each.handler for each in outcomes] == ["create", "cancel", "rest", "rest"]
    assert outcomes == [DONE] * 4


def test_all_headers_of_a_condition_must_hold() -> None:
    shop = Shop().handler("traced", when={"type": "created", "trace": True}).handler("rest")
    shop.attempt(record(type=b"created"), record(type=b"created", trace=b""), record(trace=b""))
    assert [name for name, _ in shop.got] == ["rest", "traced", "rest"]


def test_of_a_header_that_occurs_twice_the_last_counts() -> None:
    shop = Shop().handler("create", when=CREATED).handler("rest")
    shop.attempt(Record("orders", 0, 0, None, b"1", (("type", b"created"), ("type", b"cancelled"))))
    assert shop.got == [("rest", 1)]


def test_keys_and_functions_choose_too() -> None:
    shop = Shop().handler("eu", when=key_like("eu-*")).handler("big", when=lambda each: len(each.value) > 2)
    shop.handler("rest")
    shop.attempt(record(key=b"eu-1"), record(b"1000", key=b"us"), record(key=b"us"))
    assert shop.got == [("eu", 1), ("big", 1000), ("rest", 1)]


def test_a_record_is_not_decoded_before_its_route_is_chosen() -> None:
    shop = Shop().handler("create", when=CREATED).handler("rest")
    (bad,) = shop.attempt(record(b"{", type=b"created"))
    assert isinstance(bad, Failed)
    assert (bad.error_type, bad.handler, shop.got) == ("Undecodable", "create", [])


def test_each_route_has_its_own_output_and_retries() -> None:
    shop = Shop(dead_letter="dlq").handler("create", lambda value: value + 1, when=CREATED, to="out")
    shop.handler("cancel", failing, when=CANCELLED, retry=Retry(attempts=7)).handler("rest", failing)
    done, seven, usual = shop.attempt(record(type=b"created"), record(type=b"cancelled"), record())
    assert done == Done((ProducerRecord("out", None, b"2"),))
    assert isinstance(seven, Failed)
    assert isinstance(usual, Failed)
    assert (done.handler, seven.handler, seven.retry.attempts) == ("create", "cancel", 7)
    assert (usual.handler, usual.retry.attempts) == ("rest", Retry().attempts)


def test_skips_and_rejects_name_the_route() -> None:
    def skipping(value: int) -> None:
        raise Skip("seen") if value == 1 else Reject("never")

    shop = Shop().handler("create", skipping, when=CREATED)
    skipped, rejected = shop.attempt(record(b"1", type=b"created"), record(b"2", type=b"created"))
    assert skipped == Skipped("seen")
    assert rejected == Failed("Reject", "never", final=True)
    assert [skipped.handler, rejected.handler] == ["create", "create"]


@pytest.mark.parametrize("otherwise", ["dead_letter", "stop", "skip"])
def test_a_record_that_no_route_takes(otherwise: str) -> None:
    shop = (
        Shop(dead_letter="dlq").handler("create", when=CREATED, otherwise=otherwise).handler("cancel", when=CANCELLED)
    )
    (outcome,) = shop.attempt(record(type=b"refunded"))
    reason = "no handler takes this record (create, cancel): header type is refunded"
    assert shop.got == []
    assert outcome.handler == ""
    if otherwise == "skip":
        assert outcome == Skipped(reason)
    else:
        assert outcome == Failed("Unrouted", reason, final=True, halts=otherwise == "stop")


def test_a_condition_that_raises_fails_its_record_with_the_retries_of_its_route_and_no_other_record() -> None:
    def breaks(each: Record) -> bool:
        raise LookupError(each.key)

    shop = Shop().handler("odd", when=lambda each: each.key == b"bad" and breaks(each), retry=Retry(attempts=9))
    shop.handler("rest")
    bad, good = shop.attempt(record(key=b"bad"), record(key=b"good"))
    assert isinstance(bad, Failed)
    assert (bad.error_type, bad.handler, bad.retry.attempts, bad.final) == ("LookupError", "odd", 9, False)
    assert "breaks" in bad.traceback
    assert good is not bad
    assert good == DONE
    assert shop.got == [("rest", 1)]


def test_a_condition_that_returns_no_bool_is_a_bug() -> None:
    (outcome,) = Shop().handler("odd", when=lambda _each: None).attempt(record())
    assert isinstance(outcome, Failed)
    assert (outcome.error_type, outcome.halts) == (HandlerBug.__name__, True)
    assert "returned NoneType, and not a bool" in outcome.message


def test_a_function_gets_the_number_of_the_attempt_and_raw_bytes() -> None:
    seen: list[Record] = []
    shop = Shop().handler("create", when=lambda each: not seen.append(each))  # type: ignore[func-returns-value]
    shop.attempt(record(b"5"))
    assert seen == [record(b"5")]


def test_async_handlers_have_routes() -> None:
    app, got = App("shop"), []

    @app.consume("orders", when=CREATED)
    async def create(value: int) -> None:
        got.append(("create", value))

    @app.consume("orders", retry=Retry(attempts=5))
    async def rest(value: int) -> None:
        got.append(("rest", value))
        raise OSError("away")

    attempt = attempts_async(app.handlers[0])

    async def attempt_both() -> list[Outcome]:
        return [await attempt(record(b"1", type=b"created"), 1), await attempt(record(b"2"), 1)]

    done, lost = asyncio.run(attempt_both())
    assert got == [("create", 1), ("rest", 2)]
    assert (done, done.handler) == (DONE, "create")
    assert isinstance(lost, Failed)
    assert (lost.handler, lost.retry.attempts) == ("rest", 5)


# Batches.


def batches(order: str, *, is_async: bool) -> tuple[App, list[tuple[str, list[int]]]]:
    app, got = App("shop"), []

    def declare(name: str, **options: Any) -> None:
        def handle(values: list[int]) -> list[Any]:
            got.append((name, values))
            return [Reject("odd") if value % 2 else None for value in values]

        async def handle_async(values: list[int]) -> list[Any]:
            return handle(values)

        handle.__name__ = handle_async.__name__ = name
        options = {"batch": 10, "order": order, "to": "out", "dead_letter": "dlq", **options}
        app.consume("orders", **options)(handle_async if is_async else handle)

    declare("create", when=CREATED, otherwise="skip")
    declare("cancel", when=CANCELLED)
    return app, got


def attempt_batch(app: App, records: list[Record], *, is_async: bool) -> list[Outcome]:
    numbers = [1] * len(records)
    if is_async:

        async def attempt_all() -> list[Outcome]:
            return await batch_attempts_async(app.handlers[0])(records, numbers)

        return asyncio.run(attempt_all())
    return batch_attempts(app.handlers[0])(records, numbers)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("order", "calls"),
    [
        ("none", [("create", [2, 5]), ("cancel", [4, 6])]),
        ("key", [("create", [2]), ("cancel", [4]), ("create", [5]), ("cancel", [6])]),
    ],
)
def test_a_batch_is_divided_between_the_routes(
    order: str,
    calls: list[Any],
    is_async: bool,  # noqa: FBT001
) -> None:
    app, got = batches(order, is_async=is_async)
    kinds = [b"created", b"cancelled", b"refunded", b"created", b"cancelled"]
    values = [b"2", b"4", b"0", b"5", b"6"]
    records = [record(value, type=kind) for value, kind in zip(values, kinds, strict=True)]
    outcomes = attempt_batch(app, records, is_async=is_async)
    assert got == calls
    assert [each.handler for each in outcomes] == ["create", "cancel", "", "create", "cancel"]
    assert [type(each).__name__ for each in outcomes] == ["Done", "Done", "Skipped", "Failed", "Done"]


def test_a_batch_without_a_record_for_any_route_calls_nobody() -> None:
    app, got = batches("none", is_async=False)
    (outcome,) = attempt_batch(app, [record()], is_async=False)
    assert (type(outcome), got) == (Skipped, [])


def only_big(each: Record) -> bool:
    return len(each.value or b"") > 2


def big(record: Record) -> None: ...


def test_a_route_group_travels_to_worker_processes() -> None:
    app = App("shop")
    app.consume("orders", when=only_big, otherwise="skip")(big)
    copy = pickle.loads(pickle.dumps(app.handlers[0].without_settings()))
    attempt = attempts(copy)
    assert [attempt(record(value), 1).handler for value in (b"1", b"1000")] == ["", "big"]
