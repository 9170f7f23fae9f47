"""``Breaker(then="pause")`` on the bench: the real dispatcher with the bench's time."""

from collections.abc import Callable

import pytest

from penstock import NO_RETRY, App, Breaker, Rate, Record, by
from penstock.core.reports.events import BreakerClosed, BreakerOpened, Retried
from penstock.errors import ConfigError
from penstock.testing import Bench


class Service:
    def __init__(self) -> None:
        self.is_up = True
        self.calls: list[int] = []

    def call(self, order: int) -> None:
        self.calls.append(order)
        if not self.is_up:
            raise ConnectionRefusedError("the service is down")


def app_of(service: Service, **options: object) -> App:
    app = App("shop")
    breaker = Breaker(then="pause", probe="30s", on=(ConnectionError,))

    @app.consume("orders", **{"dead_letter": "orders.dlq", "breaker": breaker, "order": "key", **options})  # type: ignore[arg-type]
    def ship(order: int) -> None:
        service.call(order)

    return app


def produce(bench: Bench, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        bench.produce("orders", number, key=f"key-{number % 10}")


def test_an_outage_of_a_minute_loses_nothing_and_dead_letters_nothing() -> None:
    service = Service()
    bench = Bench(app_of(service))
    produce(bench, 50)
    bench.advance("2s")
    service.is_up = False
    produce(bench, 50, first=50)
    bench.advance("10s")
    assert [type(each) for each in bench.events_of(BreakerOpened)] == [BreakerOpened]
    assert "the service is down" in bench.events_of(BreakerOpened)[0].reason
    called = len(service.calls)
    bench.advance("50s")
    assert len(service.calls) - called <= 2, "one record is tried every 30 seconds"
    assert bench.lag("orders") == 50, "what was finished before stays committed"
    service.is_up = True
    bench.advance("31s")
    assert bench.lag("orders") == 0
    assert bench.dead_letters("orders.dlq") == []
    (closed,) = bench.events_of(BreakerClosed)
    assert 30 <= closed.seconds <= 90
    assert sorted(set(service.calls)) == list(range(100))


@pytest.mark.parametrize("disturb", [Bench.stop, Bench.rebalance, Bench.crash])
def test_it_can_be_stopped_and_lose_its_partitions_while_it_is_paused(disturb: Callable[[Bench], None]) -> None:
    service = Service()
    bench = Bench(app_of(service))
    service.is_up = False
    produce(bench, 20)
    bench.advance("10s")
    assert len(bench.events_of(BreakerOpened)) == 1
    disturb(bench)
    service.is_up = True
    bench.advance("40s")
    assert bench.lag("orders") == 0
    assert bench.dead_letters("orders.dlq") == []


def test_errors_that_it_does_not_name_become_dead_letters_even_while_it_is_open() -> None:
    service = Service()
    app = App("shop")

    @app.consume(
        "orders",
        dead_letter="orders.dlq",
        order="key",
        breaker=Breaker(then="pause", probe="30s", on=(ConnectionError,)),
    )
    def ship(order: int) -> None:
        if order == 7:
            raise ValueError("no address")
        service.call(order)

    bench = Bench(app)
    service.is_up = False
    produce(bench, 10)
    bench.advance("10m")
    assert [letter.error_type for letter in bench.dead_letters("orders.dlq")] == ["ValueError"]
    service.is_up = True
    bench.advance("31s")
    assert bench.lag("orders") == 0
    assert len(bench.dead_letters("orders.dlq")) == 1


def test_records_that_are_finished_without_a_call_are_no_success() -> None:
    service = Service()
    bench = Bench(app_of(service, dedupe=by.header("id", for_="1d")))
    bench.produce("orders", 100, key="seen", headers={"id": "seen"})
    bench.run_until_idle()
    service.is_up = False
    produce(bench, 20)
    for _ in range(100):
        bench.produce("orders", 100, key="seen", headers={"id": "seen"})
        bench.advance("0.5s")
    assert bench.dead_letters("orders.dlq") == []
    assert len(bench.events_of(BreakerOpened)) == 1
    service.is_up = True
    bench.advance("31s")
    assert bench.lag("orders") == 0
    assert bench.dead_letters("orders.dlq") == []


def test_a_record_that_has_expired_meanwhile_is_no_try() -> None:
    service = Service()
    bench = Bench(app_of(service, honor_times=True))
    service.is_up = False
    produce(bench, 20)
    bench.advance("10s")
    for number in range(1_000):
        bench.produce("orders", number, key=f"other-{number}", expires="20s")
    bench.advance("1m")
    assert len(bench.events_of(BreakerClosed)) == 0
    service.is_up = True
    bench.advance("31s")
    assert bench.lag("orders") == 0
    assert sorted(set(service.calls)) == list(range(20))


def test_in_batches_a_record_that_fails_goes_back_too() -> None:
    service = Service()
    app = App("shop")

    @app.consume(
        "orders", dead_letter="orders.dlq", batch=5, order="key", linger="10ms",
        breaker=Breaker(then="pause", probe="30s", on=(ConnectionError,)),
    )  # fmt: skip
    def ship(orders: list[int]) -> None:
        for order in orders:
            service.call(order)

    bench = Bench(app)
    service.is_up = False
    produce(bench, 20)
    bench.advance("60s")
    assert bench.dead_letters("orders.dlq") == []
    service.is_up = True
    bench.advance("31s")
    assert bench.lag("orders") == 0
    assert bench.dead_letters("orders.dlq") == []


def test_with_retry_topics_the_last_attempt_is_not_the_end() -> None:
    service = Service()
    bench = Bench(app_of(service, retry_topics=["1s"]))
    service.is_up = False
    produce(bench, 5)
    bench.advance("2m")
    assert bench.dead_letters("orders.dlq") == []
    service.is_up = True
    bench.advance("31s")
    assert bench.lag("orders") == 0
    assert bench.dead_letters("orders.dlq") == []
    assert bench.events_of(Retried)


def test_at_most_once_cannot_try_a_record_again() -> None:
    with pytest.raises(ConfigError, match="at-most-once"):
        Bench(app_of(Service(), delivery="at-most-once"))


def test_async_handlers_pause_too() -> None:
    service = Service()
    app = App("shop")

    @app.consume(
        "orders", dead_letter="orders.dlq", order="none",
        breaker=Breaker(then="pause", probe="30s", on=(ConnectionError,)),
    )  # fmt: skip
    async def ship(order: Record) -> None:
        service.call(order.offset)

    bench = Bench(app)
    service.is_up = False
    produce(bench, 100)
    bench.advance("60s")
    assert len(bench.events_of(BreakerOpened)) == 1
    service.is_up = True
    bench.advance("31s")
    assert bench.lag("orders") == 0
    assert bench.dead_letters("orders.dlq") == []


def test_where_few_records_arrive_one_that_always_fails_does_not_pause_the_others_for_ever() -> None:
    app = App("shop")

    @app.consume(
        "orders", dead_letter="orders.dlq", order="key",
        breaker=Breaker(then="pause", probe="30s", on=(ConnectionError,)),
    )  # fmt: skip
    def ship(order: int) -> None:
        if order == 7:
            raise ConnectionError("only this record names a host that does not exist")

    bench = Bench(app)
    for number in range(100):
        bench.produce("orders", number, key=f"key-{number}")
        bench.advance("10s")
    assert [letter.offset for letter in bench.dead_letters("orders.dlq")] == [7]
    assert len(bench.events_of(BreakerOpened)) == 3
    assert bench.lag("orders") == 0


def test_a_doubt_that_lasts_from_one_outage_to_the_next_is_no_reason() -> None:
    service = Service()
    bench = Bench(app_of(service, rate=Rate(1, per="1m", by="key"), retry=NO_RETRY))
    service.is_up = False
    bench.produce("orders", 0, key="waits for its rate")
    bench.advance("1s")
    service.is_up = True
    for number in range(1, 31):
        bench.produce("orders", number, key=f"key-{number}")
        bench.advance("1s")
    assert sorted(service.calls) == list(range(31)), "the first one waits for its second call"
    service.is_up = False
    bench.advance("1m")
    assert service.calls.count(0) > 1
    assert bench.dead_letters("orders.dlq") == []
    service.is_up = True
    bench.advance("10m")
    assert bench.lag("orders") == 0
    assert bench.dead_letters("orders.dlq") == []
