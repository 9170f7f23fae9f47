"""Resources and middleware of an app on the bench."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from penstock import App, Record
from penstock.errors import CallbackError, ConfigError, HandlerError
from penstock.events import Error
from penstock.testing import Bench


def shop(seen: list[str]) -> App:
    app = App("shop")

    @app.resource
    def db() -> Iterator[str]:
        seen.append("open db")
        yield "db"
        seen.append("close db")

    @app.resource(scope="worker")
    def session(db: str) -> Iterator[str]:
        seen.append("open session")
        yield f"session of {db}"
        seen.append("close session")

    @app.consume("orders")
    def create(order: int, session: str) -> None:
        seen.append(f"{order} {session}")

    return app


def test_resources_are_made_before_the_first_record_and_closed_in_reverse_order() -> None:
    seen: list[str] = []
    bench = Bench(shop(seen))
    bench.produce("orders", 1)
    assert seen == []
    bench.run_until_idle()
    assert seen == ["open db", "open session", "1 session of db"]
    bench.stop()
    assert seen[3:] == ["close session", "close db"]
    bench.run_until_idle()
    assert seen[5:] == ["open db", "open session"]


def test_a_test_replaces_a_resource_and_what_only_that_one_needs_is_not_made() -> None:
    seen: list[str] = []
    bench = Bench(shop(seen), session="fake")
    bench.produce("orders", 1)
    bench.run_until_idle()
    bench.stop()
    assert "1 fake" in seen
    assert "open session" not in seen


def test_a_value_for_an_unknown_resource_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"App 'shop' has no resource called sesion\. It has db, session"):
        Bench(shop([]), sesion="fake")


def test_a_missing_resource_is_refused_by_the_bench() -> None:
    app = App("shop")

    @app.consume("orders")
    def create(order: int, db: str) -> None: ...

    with pytest.raises(ConfigError, match="Handler create takes db"):
        Bench(app)


def test_a_resource_that_raises_stops_the_app_before_anything_is_consumed() -> None:
    seen: list[str] = []
    app = shop(seen)

    @app.resource
    def broken() -> str:
        raise ValueError("no")

    @app.consume("cancellations", group="b")
    def cancel(order: int, broken: str) -> None: ...

    bench = Bench(app)
    bench.produce("orders", 1)
    with pytest.raises(CallbackError, match="The resource broken raised ValueError: no") as raised:
        bench.run_until_idle()
    assert "in broken" in raised.value.traceback
    assert seen == ["open db", "close db"]
    assert bench.committed("orders") == {}


def test_resources_are_closed_after_an_error_of_a_handler_and_not_by_a_crash() -> None:
    seen: list[str] = []
    app = shop(seen)

    @app.consume("cancellations", group="b")
    def cancel(order: int, db: str) -> None:
        raise ValueError("no")

    bench = Bench(app)
    bench.run_until_idle()
    bench.crash()
    assert seen == ["open db", "open session"]
    bench.produce("cancellations", 1)
    with pytest.raises(HandlerError):
        bench.advance("1h")
    assert seen[2:] == ["open db", "open session", "close session", "close db"]


def test_an_error_of_closing_is_raised_by_the_stop_and_reported() -> None:
    app = App("shop")

    @app.resource
    def db() -> Iterator[str]:
        yield "db"
        raise ValueError("cannot close")

    @app.consume("orders")
    def create(order: int, db: str) -> None: ...

    bench = Bench(app)
    bench.run_until_idle()
    with pytest.raises(CallbackError, match="The resource db raised while it was closed ValueError: cannot close"):
        bench.stop()
    assert [event.fatal for event in bench.events_of(Error)] == [True]


def test_the_resource_of_a_partition_lives_from_its_first_record_to_its_last_commit() -> None:
    seen: list[Any] = []
    app = App("shop")

    @app.resource(scope="partition")
    def cache() -> Iterator[dict[int, int]]:
        seen.append("open")
        yield {}
        seen.append(("close", dict(bench.committed("orders"))))

    @app.consume("orders")
    def create(order: int, cache: dict[int, int], record: Record) -> None:
        cache[order] = record.partition
        seen.append((record.partition, sorted(cache)))

    bench = Bench(app, partitions=2)
    bench.run_until_idle()
    assert seen == []
    for order in range(4):
        bench.produce("orders", order, partition=order % 2)
    bench.run_until_idle()
    assert sorted(map(str, seen)) == sorted(map(str, ["open", (0, [0]), (0, [0, 2]), "open", (1, [1]), (1, [1, 3])]))
    seen.clear()
    bench.rebalance()
    assert seen == [("close", {0: 2, 1: 2})] * 2
    seen.clear()
    bench.produce("orders", 9, partition=1)
    bench.run_until_idle()
    assert seen == ["open", (1, [9])]
    bench.rebalance(lose=[("orders", 1)])
    # The record was not committed before the loss, so it comes again.
    assert seen[2:] == [("close", {0: 2, 1: 2}), "open", (1, [9])]
    bench.stop()
    assert seen[5:] == [("close", {0: 2, 1: 3})]


def test_async_resources_of_all_scopes() -> None:
    seen: list[str] = []
    app = App("shop")

    @app.resource
    async def pool() -> AsyncIterator[str]:
        await asyncio.sleep(2)
        async with asyncio.timeout(3600):  # must be left in the task that entered it
            seen.append("open pool")
            yield "pool"
        await asyncio.sleep(1)
        seen.append("close pool")

    @app.resource(scope="partition")
    async def cache(pool: str) -> AsyncIterator[str]:
        await asyncio.sleep(1)
        seen.append("open cache")
        yield f"cache of {pool}"
        await asyncio.sleep(1)
        seen.append("close cache")

    @app.consume("orders")
    async def create(order: int, cache: str) -> None:
        seen.append(f"{order} {cache}")

    bench = Bench(app)
    bench.produce("orders", 1)
    bench.produce("orders", 2, key="b")
    bench.advance("5s")
    assert seen == ["open pool", "open cache", "1 cache of pool", "2 cache of pool"]
    bench.stop()
    assert seen[4:] == ["close cache", "close pool"]


def test_a_resource_of_a_partition_that_raises_stops_the_app_at_its_record() -> None:
    app = App("shop")

    @app.resource(scope="partition")
    def cache() -> str:
        raise ValueError("no disk")

    @app.consume("orders", dead_letter="dead")
    def create(order: int, cache: str) -> None: ...

    bench = Bench(app)
    bench.produce("orders", 1)
    with pytest.raises(HandlerError, match="For partition 0 of orders: The resource cache raised ValueError: no disk"):
        bench.run_until_idle()
    assert bench.dead_letters("dead") == []
    assert bench.committed("orders") == {0: 0}


def test_middleware_on_the_bench() -> None:
    app = App("shop")

    @app.consume("orders", to="receipts")
    def create(order: int) -> int:
        return order

    @app.around
    def double(record: Record, call: Any) -> Any:
        return 2 * call()

    bench = Bench(app)
    bench.produce("orders", 4)
    bench.run_until_idle()
    assert bench.outputs("receipts", int) == [8]
