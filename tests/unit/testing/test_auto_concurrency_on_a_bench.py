"""``concurrency="auto"`` on the bench: the real dispatcher with the bench's time."""

import asyncio

from penstock import App, Record
from penstock.core.reports.events import ConcurrencyChanged
from penstock.testing import Bench


class Dependency:
    """Answers in 10 ms up to ``capacity`` at once, and slower above."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.running = self.most = 0

    async def call(self) -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0.010 * max(1.0, self.running / self.capacity))
        self.running -= 1


def test_a_handler_gets_as_many_at_once_as_its_dependency_serves_well() -> None:
    app, dependency = App("shop"), Dependency(capacity=16)

    @app.consume("orders", concurrency="auto", order="none", commit_every="1h")
    async def ship(order: Record) -> None:
        await dependency.call()

    bench = Bench(app)
    for _ in range(6_000):
        bench.produce("orders", b"x")
    bench.advance("1s")
    assert bench.lag("orders") == 6_000  # nothing is committed yet, so this counts all
    assert dependency.most <= 2 * 16  # it doubles, and one step finds out
    changes = bench.events_of(ConcurrencyChanged)
    assert [changes[0].before, *(each.concurrency for each in changes)][0] == 4
    assert len(changes) <= 4
    bench.advance("1s")
    finished = len([each for each in bench.events if type(each).__name__ == "Finished"])
    assert finished >= 0.75 * 2 * 1_600


def test_it_runs_no_more_than_the_largest_number() -> None:
    app, dependency = App("shop"), Dependency(capacity=1_000)

    @app.consume("orders", concurrency="auto", max_concurrency=10, order="none")
    async def ship(order: Record) -> None:
        await dependency.call()

    bench = Bench(app)
    for _ in range(1_000):
        bench.produce("orders", b"x")
    bench.advance("2s")
    assert dependency.most == 10
    assert bench.lag("orders") == 0


def test_calls_that_take_no_time_at_all_are_no_error() -> None:
    app, called = App("shop"), []

    @app.consume("orders", concurrency="auto", order="none")
    def ship(order: Record) -> None:
        called.append(order.offset)

    bench = Bench(app)
    for _ in range(20):
        for _ in range(20):
            bench.produce("orders", b"x")
        bench.advance("1s")
    assert len(called) == 400
