"""``rate=`` on the bench: the real dispatcher with the bench's time."""

import asyncio
from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest

from penstock import App, Rate, Record, Retry, by
from penstock.core.reports.events import Dispatched, Error, Event, RateEased, RateLimited
from penstock.errors import ConfigError
from penstock.testing import Bench


class TimedBench(Bench):
    """Remembers when each record was given to a worker."""

    def __init__(self, app: App, **options: Any) -> None:
        super().__init__(app, **options)
        self.begun: list[tuple[float, Dispatched]] = []
        self._world = replace(self._world, emit=self._note)

    def _note(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, Dispatched):
            self.begun.append((self._clock.elapsed(), event))

    @property
    def elapsed(self) -> float:
        return self._clock.elapsed()

    @property
    def times(self) -> list[float]:
        return [at for at, _ in self.begun]


def most_in_a_window(times: list[float], seconds: float) -> int:
    """The most of these times, which ascend, in a window of this length, without its end."""
    most = first = 0
    for number, at in enumerate(times):
        while at - times[first] >= seconds - 1e-9:
            first += 1
        most = max(most, number - first + 1)
    return most


@pytest.mark.parametrize("order", ["partition", "key", "none"])
def test_a_handler_keeps_its_rate_and_uses_all_of_it(order: Any) -> None:
    app, called = App("shop"), []

    @app.consume("orders", order=order, rate=Rate(100, burst=20))
    def ship(number: int) -> None:
        called.append(number)

    bench = TimedBench(app)
    for number in range(1_000):
        bench.produce("orders", number, key=f"key-{number % 17}")
    bench.advance("5s")
    assert len(called) == 20 + 5 * 100
    bench.advance("5s")
    assert sorted(called) == list(range(1_000))
    assert bench.lag("orders") == 0
    assert most_in_a_window(bench.times, 1.0) == 119
    assert most_in_a_window(bench.times, 0.005) == 20


@pytest.mark.parametrize("order", ["key", "none"])
def test_of_ten_thousand_tenants_none_exceeds_its_rate_and_the_others_use_all_workers(order: Any) -> None:
    app, tenants = App("shop"), 10_000
    at_once: list[int] = []
    called: list[tuple[float, str]] = []
    running = 0

    @app.consume(
        "orders", order=order, concurrency=40, max_in_flight=20_000, commit_every="1h",
        rate=Rate(100, burst=5, by=by.header("tenant")),
    )  # fmt: skip
    async def ship(record: Record) -> None:
        nonlocal running
        running += 1
        at_once.append(running)
        called.append((bench.elapsed, tenant_of[record.offset]))
        await asyncio.sleep(0.02)
        running -= 1

    bench, tenant_of = TimedBench(app), {}
    # Two tenants flood the topic; the others have one record each.
    for number in range(tenants):
        for tenant in ("flood", "other flood", f"tenant-{number}")[0 if number % 7 == 0 else 2 :]:
            record = bench.produce(
                "orders", b"x", key=tenant if number % 3 else f"key-{number}", headers={"tenant": tenant}
            )
            tenant_of[record.offset] = tenant
    bench.advance("5s")
    given = [(at, tenant_of[event.offset]) for at, event in bench.begun]
    for calls in (given, called):
        times: dict[str, list[float]] = defaultdict(list)
        for at, tenant in calls:
            times[tenant].append(at)
        assert len(times) >= 8_900
        assert max(most_in_a_window(each, 1.0) for each in times.values()) <= 104
        assert most_in_a_window(times["flood"], 0.005) <= 5
    # All 40 workers are busy all the time: 2,000 records a second.
    assert len([at for at, _ in called if at < 5.0]) >= 0.99 * 5 * 2_000
    assert max(at_once) == 40


def test_a_record_that_waits_holds_only_its_lane() -> None:
    app, called = App("shop"), []

    @app.consume(
        "orders", order="key", concurrency=1, rate=Rate(1, per="1h", by=lambda record: (record.value or b"")[:1])
    )
    def ship(record: Record) -> None:
        called.append(record.value or b"")

    bench = Bench(app)
    for key, value in (
        ("a", b"a1"),
        ("a", b"b1"),
        ("a", b"a2"),
        ("a", b"c1"),
        ("d", b"d1"),
        (None, b"a3"),
        (None, b"e1"),
    ):
        bench.produce("orders", value, key=key)
    bench.advance("1s")
    assert sorted(called) == [b"a1", b"b1", b"d1", b"e1"], "a2 holds c1, which has its key, and nothing else"
    bench.advance("2h")
    assert called[4:] in ([b"a2", b"c1", b"a3"], [b"a3", b"a2", b"c1"])
    assert bench.lag("orders") == 0


def test_each_attempt_counts_and_a_retry_waits_for_the_rate_too() -> None:
    app, called = App("shop"), []

    @app.consume("orders", order="key", rate=Rate(1, per="10s"), retry=Retry(attempts=3, first="1s"), dead_letter="dlq")
    def ship(record: Record) -> None:
        called.append(record.attempt)
        raise OSError("no")

    bench = TimedBench(app)
    bench.produce("orders", b"x")
    bench.advance("1m")
    assert called == [1, 2, 3]
    assert [round(at) for at in bench.times] == [0, 10, 20]


def test_with_batches_the_rate_counts_batches() -> None:
    app, sizes = App("shop"), []

    @app.consume("orders", batch=10, linger="50ms", rate=Rate(2, burst=1))
    def ship(orders: list[int]) -> None:
        sizes.append(len(orders))

    bench = Bench(app)
    for number in range(45):
        bench.produce("orders", number)
    bench.advance("1.9s")
    assert sizes == [10] * 4
    bench.advance("1s")
    assert sizes == [10] * 4 + [5]


def test_events_say_when_a_handler_begins_and_ends_to_be_limited() -> None:
    app = App("shop")

    @app.consume("orders", order="key", rate=Rate(10, burst=1, by="key"))
    def ship(order: int) -> None: ...

    bench = Bench(app)
    for number in range(200):
        bench.produce("orders", number, key=f"key-{number % 4}", partition=0)
    bench.advance("30s")
    (limited,) = bench.events_of(RateLimited)
    (eased,) = bench.events_of(RateEased)
    assert (limited.rate, limited.waiting) == ("10 per 1s", 4)
    assert 4 <= eased.seconds <= 6


def test_a_tenant_that_cannot_be_read_is_reported_once_and_its_records_run() -> None:
    app, called = App("shop"), []

    @app.consume("orders", rate=Rate(10, by=lambda record: record.headers[0]))
    def ship(order: int) -> None:
        called.append(order)

    bench = Bench(app)
    for number in range(20):
        bench.produce("orders", number)
    bench.advance("10s")
    assert called == list(range(20))
    (error,) = bench.events_of(Error)
    assert "Rate.by= failed with IndexError" in error.reason
    assert "orders[0]@0" in error.reason


@pytest.mark.parametrize("disturb", [Bench.stop, Bench.rebalance, Bench.crash])
def test_a_rebalance_while_records_wait_loses_none(disturb: Any) -> None:
    app, called = App("shop"), []

    @app.consume("orders", order="key", rate=Rate(1, per="1m", by="key"))
    def ship(order: int) -> None:
        called.append(order)

    bench = Bench(app)
    for number in range(9):
        bench.produce("orders", number, key=f"key-{number % 3}")
    bench.advance("10s")
    disturb(bench)
    bench.advance("10m")
    assert sorted(set(called)) == list(range(9))
    assert bench.lag("orders") == 0


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"rate": 100}, "is not a Rate"),
        ({"rate": Rate(1, by="key"), "batch": 5}, "a batch has records of several tenants"),
        ({"rate": Rate(1, shared=True), "partitions": [("orders", 0)], "topics": ()}, "there is no group"),
    ],
)
def test_what_a_handler_cannot_keep_is_refused(options: dict[str, Any], problem: str) -> None:
    topics = options.pop("topics", ("orders",))
    with pytest.raises(ConfigError, match=problem):
        App("shop").consume(*topics, **options)(lambda orders: None)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"limit": 0}, "is not a number of calls"),
        ({"limit": True}, "is not a number of calls"),
        ({"limit": 1, "per": "0s"}, "is no time"),
        ({"limit": 1, "burst": 0}, "is not a count"),
        ({"limit": 1, "by": "tenant"}, "does not say which tenant"),
        ({"limit": 1, "by": by}, "does not say which tenant"),
        ({"limit": 1, "by": by("tenant")}, "before values are decoded"),
        ({"limit": 1, "by": "key", "shared": True}, "needs no shared=True"),
        ({"limit": 1, "shared": 1}, "is not a bool"),
    ],
)
def test_a_rate_that_makes_no_sense_is_refused(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        Rate(**arguments)
