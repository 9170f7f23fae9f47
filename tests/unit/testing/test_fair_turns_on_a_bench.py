"""``fair_by=``, ``weights=`` and ``priority=`` on the bench: the real dispatcher with the bench's time."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from penstock import App, Later, Record, by
from penstock.core.reports.events import Error, OffsetMapFull
from penstock.core.scheduling import epoch_parts, lanes
from penstock.errors import ConfigError
from penstock.testing import Bench


class Shop:
    """One record at a time, each for 10 ms."""

    def __init__(self, **options: Any) -> None:
        self.app, self.ran = App("shop"), list[str]()

        @self.app.consume("orders", **{"concurrency": 1, "max_in_flight": 1_000, **options})
        async def ship(record: Record) -> None:
            self.ran.append(record.value.decode() if record.value else "")
            await asyncio.sleep(0.010)

    def fill(self, bench: Bench, *tenants: tuple[str, int]) -> None:
        for tenant, count in tenants:
            for number in range(count):
                headers = {"tenant": tenant, "priority": tenant}
                bench.produce("orders", tenant.encode(), key=f"{tenant}:{number}", headers=headers)


@pytest.mark.parametrize("fair_by", [by.header("tenant"), by.key(before=":"), lambda record: record.value])
@pytest.mark.parametrize("order", [None, "none"])
def test_a_flood_delays_no_other_tenant_by_more_than_its_turns(fair_by: Any, order: str | None) -> None:
    shop = Shop(fair_by=fair_by, order=order)
    bench = Bench(shop.app)
    shop.fill(bench, ("flood", 300), ("small", 10), ("other", 10))
    bench.advance("1s")
    # A few works wait ahead of the workers.
    assert max(n for n, tenant in enumerate(shop.ran) if tenant != "flood") < 40
    bench.advance("5s")
    assert bench.lag("orders") == 0


def test_shares_follow_the_weights() -> None:
    shop = Shop(fair_by=by.header("tenant"), weights={"gold": 3, "free": 0.5})
    bench = Bench(shop.app)
    shop.fill(bench, ("free", 100), ("gold", 100), ("other", 100))
    bench.advance("1s")
    ran = Counter(shop.ran[:94])
    assert ran["gold"] == pytest.approx(60, abs=3)
    assert ran["other"] == pytest.approx(20, abs=3)
    assert ran["free"] == pytest.approx(10, abs=4)


def test_higher_priorities_first_and_the_lowest_is_not_starved() -> None:
    shop = Shop(priority=by.header("priority"))
    bench = Bench(shop.app)
    shop.fill(bench, ("low", 50), ("normal", 100), ("high", 100))
    bench.advance("600ms")
    assert Counter(shop.ran[4:54])["high"] == 45
    assert Counter(shop.ran[4:54])["low"] == 5
    bench.advance("3s")
    assert bench.lag("orders") == 0


def test_a_priority_that_is_none_is_named_once_and_its_records_run() -> None:
    shop = Shop(priority=by.header("priority"))
    bench = Bench(shop.app)
    shop.fill(bench, ("urgent\x1b", 5), ("3", 2))
    bench.advance("1s")
    assert bench.lag("orders") == 0
    (warning,) = [each.reason for each in bench.events_of(Error)]
    assert "priority= found b'urgent\\x1b' for orders[0]@0" in warning


def test_a_function_that_fails_stops_nothing() -> None:
    shop = Shop(fair_by=lambda record: record.headers[7])
    bench = Bench(shop.app)
    shop.fill(bench, ("a", 20))
    bench.advance("1s")
    assert bench.lag("orders") == 0
    (warning,) = [each.reason for each in bench.events_of(Error)]
    assert "fair_by= failed with IndexError" in warning


def test_records_far_ahead_of_the_commit_point_wait_and_an_event_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epoch_parts, "MAX_RANGES", 20)
    for module in (epoch_parts, lanes):
        monkeypatch.setattr(module, "BITMAP_SPAN", 100)
    app, waited, done = App("shop"), set[int](), set[int]()

    @app.consume("orders", fair_by=by.header("tenant"), concurrency=4)
    async def ship(record: Record) -> None:
        if record.offset % 10 == 0 and record.offset not in waited:
            waited.add(record.offset)
            raise Later("1m")
        done.add(record.offset)
        await asyncio.sleep(0.001)

    bench = Bench(app)
    for number in range(500):
        bench.produce("orders", b"x", key=str(number), headers={"tenant": str(number % 3)})
    bench.advance("5s")
    (full,) = bench.events_of(OffsetMapFull)
    assert (full.partition, full.offset) == (0, 0)
    assert 100 < len(done) < 300
    bench.advance("3m")
    assert bench.lag("orders") == 0
    assert done == {*range(500)}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"fair_by": "tenant"}, "fair_by='tenant' does not say what to read"),
        ({"priority": by("level")}, "records take turns before they are decoded"),
        ({"fair_by": by.key(), "order": "partition"}, 'order="partition" says that already'),
        ({"weights": {"a": 2}}, "nothing names tenants"),
        ({"fair_by": by.key(), "weights": {"a": 0}}, "gives 'a' the weight 0"),
        ({"fair_by": by.key(), "weights": ["a"]}, "is no mapping"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        Shop(**options)


def test_a_handler_with_turns_has_an_order_by_key() -> None:
    shop = Shop(fair_by=by.key(), concurrency=None)
    assert shop.app.handlers[0].order == "key"
