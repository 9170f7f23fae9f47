"""Time on the bench: Later, time limits, and the times that producers set."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock import App, Later, Record, Retry, Skip
from penstock.core.reports import events
from penstock.errors import ConfigError, HandlerError
from penstock.testing import Bench

START = datetime(2025, 1, 1, tzinfo=UTC)


class Shop:
    """A handler that asks for time until the bench's clock reaches ``opens``."""

    def __init__(self, app: App, **options: object) -> None:
        self.seen: list[tuple[int, int]] = []
        self.opens = "0s"
        app.consume("orders", **options)(self.handle)  # type: ignore[arg-type]

    def handle(self, value: int, record: Record) -> None:
        self.seen.append((value, record.attempt))
        if value and len(self.seen) == 1:
            raise Later(self.opens)


def test_later_blocks_only_its_lane_and_counts_as_no_attempt() -> None:
    app = App("shop")
    shop = Shop(app, order="key", retry=Retry(attempts=1))
    shop.opens = "10m"
    bench = Bench(app)
    bench.produce("orders", 1, key=b"a")
    bench.produce("orders", 2, key=b"a")
    bench.produce("orders", 0, key=b"b")
    bench.run_until_idle()
    assert shop.seen == [(1, 1), (0, 1)]
    (delayed,) = bench.events_of(events.Delayed)
    assert (delayed.offset, delayed.reason, delayed.seconds, delayed.to) == (0, "again in 10m", 600.0, None)
    bench.advance("9m")
    assert len(shop.seen) == 2
    bench.advance("1m")
    assert shop.seen[2:] == [(1, 1), (2, 1)]
    assert not bench.events_of(events.Retried)
    bench.advance("2s")
    assert bench.committed("orders") == {0: 3}


def test_later_at_a_time_in_the_past_is_no_endless_loop() -> None:
    app, seen = App("shop"), []

    @app.consume("orders")
    def handle(value: int) -> None:
        seen.append(value)
        if len(seen) < 4:
            raise Later(at=START)

    bench = Bench(app)
    bench.produce("orders", 1)
    bench.run_until_idle()
    assert seen == [1]
    bench.advance("1s")
    assert seen == [1] * 4


def test_later_waits_in_retry_topics_until_exactly_its_time() -> None:
    app, seen = App("shop"), []

    @app.consume("orders", retry_topics=["1m", "5m"])
    def handle(value: int, record: Record) -> None:
        seen.append((value, record.attempt, bench.now - START))
        if value == 1 and bench.now < START + timedelta(minutes=12):
            raise Later(at=START + timedelta(minutes=12, seconds=30))

    bench = Bench(app)
    bench.produce("orders", 1)
    bench.produce("orders", 2)
    bench.run_until_idle()
    bench.advance("2s")
    assert bench.committed("orders") == {0: 2}, "it is in the retry topic"
    bench.advance("20m")
    assert [each[:2] for each in seen] == [(1, 1), (2, 1), (1, 1)], "the same attempt"
    assert timedelta(minutes=12, seconds=30) <= seen[-1][2] < timedelta(minutes=12, seconds=31)
    waits = bench.events_of(events.Delayed)
    assert [each.to for each in waits] == [
        "orders.retry.5m", "orders.retry.5m", "orders.retry.1m", "orders.retry.1m", None
    ]  # fmt: skip
    assert waits[-1].seconds < 60, "the rest is spent in memory"
    assert not bench.events_of(events.Postponed)


def test_a_failure_after_later_counts_on_from_where_it_was() -> None:
    app, seen = App("shop"), []

    @app.consume("orders", dead_letter="dlq", retry=Retry(attempts=3, first="1m", jitter=0), retry_topics=["1m"])
    def handle(value: int, record: Record) -> None:
        seen.append(record.attempt)
        if len(seen) in (2, 4):
            raise Later("1m")
        raise OSError("away")

    bench = Bench(app)
    bench.produce("orders", 1)
    bench.advance("10m")
    assert seen == [1, 2, 2, 3, 3]
    (letter,) = bench.dead_letters("dlq")
    assert (letter.attempts, letter.error_type) == (3, "OSError")


def test_a_wrong_later_stops_the_app_as_a_bug_of_the_handler() -> None:
    app = App("shop")

    @app.consume("orders", dead_letter="dlq")
    def handle(value: int) -> None:
        raise Later("soon")

    bench = Bench(app)
    bench.produce("orders", 1)
    with pytest.raises(HandlerError, match=r"HandlerBug: Later='soon' is not a duration"):
        bench.run_until_idle()


def test_at_most_once_a_record_cannot_come_again() -> None:
    app = App("shop")

    @app.consume("orders", dead_letter="dlq", delivery="at-most-once")
    def handle(value: int) -> None:
        raise Later("1m")

    bench = Bench(app)
    bench.produce("orders", 1)
    with pytest.raises(HandlerError, match="raised Later, but with at-most-once a record is committed before"):
        bench.advance("10s")


def test_a_batch_handler_delays_the_whole_batch_or_single_records() -> None:
    app, calls = App("shop"), []

    @app.consume("orders", batch=4, linger="1ms")
    def handle(values: list[int]) -> Any:
        calls.append(values)
        if len(calls) == 1:
            raise Later("1m")
        return [Later("2m") if value == 2 and len(calls) == 2 else None for value in values]

    bench = Bench(app)
    for value in range(4):
        bench.produce("orders", value)
    bench.advance("1s")
    assert calls == [[0, 1, 2, 3]], "the records are not attempted one by one"
    bench.advance("1m")
    bench.advance("2m")
    assert calls[1:] == [[0, 1, 2, 3], [2]]
    bench.advance("2s")
    assert bench.lag("orders") == 0
    assert not bench.events_of(events.Retried)


# Time limits.


def test_an_async_handler_is_cancelled_at_its_limit_and_retried_by_the_type() -> None:
    app, cancelled = App("shop"), []

    @app.consume(
        "orders", timeout="30s", dead_letter="dlq", retry={TimeoutError: Retry(attempts=2, first="1s", jitter=0)}
    )
    async def handle(value: int) -> None:
        try:
            await asyncio.sleep(value)
        except asyncio.CancelledError:
            cancelled.append(bench.now - START)
            raise

    bench = Bench(app)
    bench.produce("orders", 29)
    bench.produce("orders", 31)
    bench.advance("5m")
    assert [round(each.total_seconds()) for each in cancelled] == [59, 90]
    (retried,) = bench.events_of(events.Retried)
    assert retried.reason == ("TimeoutError: the handler took longer than its timeout of 30 s: Penstock cancelled it")
    assert "await asyncio.sleep(value)" in retried.traceback
    (letter,) = bench.dead_letters("dlq")
    assert (letter.value, letter.attempts, letter.error_type) == (b"31", 2, "TimeoutError")


def test_a_timeout_that_the_handler_raises_itself_is_told_apart() -> None:
    app = App("shop")

    @app.consume("orders", timeout="30s", dead_letter="dlq", retry=Retry(attempts=1))
    async def handle(value: int) -> None:
        async with asyncio.timeout(5):
            await asyncio.sleep(value)

    bench = Bench(app)
    bench.produce("orders", 10)
    bench.advance("1m")
    (letter,) = bench.dead_letters("dlq")
    assert letter.error_type == "TimeoutError"
    assert "its timeout of" not in letter.error_message


@pytest.mark.parametrize("reaction", ["returns", "raises", "skips"])
def test_a_handler_that_suppresses_its_cancellation_has_failed_all_the_same(reaction: str) -> None:
    app = App("shop")

    @app.consume("orders", timeout="30s", to="out", dead_letter="dlq", retry=Retry(attempts=1))
    async def handle(value: int) -> int:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            if reaction == "raises":
                raise ValueError("no") from None
            if reaction == "skips":
                raise Skip("no") from None
        return value

    bench = Bench(app)
    bench.produce("orders", 1)
    bench.advance("2m")
    assert [each.error_type for each in bench.dead_letters("dlq")] == ["TimeoutError"]
    assert bench.records("out") == []


def test_the_late_result_of_a_thread_is_dropped() -> None:
    app = App("shop")

    @app.consume("orders", timeout="30s", to="out", dead_letter="dlq", retry=Retry(attempts=2, first="1s"))
    def handle(value: int, record: Record) -> int:
        bench.advance(40 if record.attempt == 1 else 1)
        return value

    bench = Bench(app)
    bench.produce("orders", 1)
    bench.advance("2m")
    (retried,) = bench.events_of(events.Retried)
    assert retried.reason == (
        "TimeoutError: the handler took longer than its timeout of 30 s: it returned after 40.0 s, and its result "
        "was dropped"
    )
    assert bench.outputs("out") == [1]


def test_the_limit_of_a_batch_is_for_its_call_and_finds_the_slow_record() -> None:
    app, calls = App("shop"), []

    @app.consume("orders", timeout="30s", batch=3, linger="1ms", dead_letter="dlq", retry=Retry(attempts=1))
    async def handle(values: list[int]) -> None:
        calls.append(values)
        await asyncio.sleep(sum(values))

    bench = Bench(app)
    for value in (1, 100, 2):
        bench.produce("orders", value)
    bench.advance("5m")
    assert calls == [[1, 100, 2], [1], [100], [2]]
    assert [each.value for each in bench.dead_letters("dlq")] == [b"100"]


# Times that producers set.


def test_a_record_waits_for_the_time_that_its_producer_has_set() -> None:
    app, seen = App("shop"), []

    @app.consume("orders", honor_times=True, order="key")
    def handle(value: int, record: Record) -> None:
        seen.append((value, record.attempt))

    bench = Bench(app)
    bench.produce("orders", 1, key=b"a", not_before="10m")
    bench.produce("orders", 2, key=b"b")
    bench.advance("9m")
    assert seen == [(2, 1)]
    bench.crash()
    bench.advance("59s")
    assert seen[1:] in ([], [(2, 1)]), "a restart makes it no earlier"
    bench.advance("2s")
    assert seen[-1] == (1, 1)
    assert {each.reason for each in bench.events_of(events.Delayed)} == {"its producer set not_before"}


def test_a_record_that_waits_for_its_producer_s_time_waits_in_a_retry_topic_where_one_fits() -> None:
    app, seen = App("shop"), []

    @app.consume("orders", honor_times=True, retry_topics=["1m"])
    def handle(value: int) -> None:
        seen.append((value, bench.now - START))

    bench = Bench(app)
    bench.produce("orders", 1, not_before="3m")
    bench.produce("orders", 2)
    bench.run_until_idle()
    assert [each[0] for each in seen] == [2]
    bench.advance("10m")
    assert seen[1][0] == 1
    assert timedelta(minutes=3) <= seen[1][1] < timedelta(minutes=3, seconds=1)


def test_at_most_once_a_record_could_not_wait_over_a_stop() -> None:
    def handle(value: int) -> None: ...

    with pytest.raises(ConfigError, match="honor_times= does not work with delivery"):
        App("shop").consume("orders", delivery="at-most-once", honor_times=True)(handle)


def test_an_expired_record_is_finished_without_a_call() -> None:
    app, seen = App("shop"), []

    @app.consume("orders", honor_times=True)
    def handle(value: int) -> None:
        seen.append(value)

    bench = Bench(app)
    bench.run_until_idle()
    bench.produce("orders", 1, expires="10s")
    bench.run_until_idle()
    bench.stop()
    bench.produce("orders", 2, expires=START + timedelta(seconds=-1))
    bench.produce("orders", 3)
    bench.advance("5s")
    assert seen == [1, 3]
    (expired,) = bench.events_of(events.Expired)
    assert (expired.offset, expired.reason) == (1, "expired 1.0 s ago")
    assert bench.lag("orders") == 0
    assert [each.offset for each in bench.events_of(events.Finished)] == [0, 2]


def test_a_record_can_expire_while_it_waits_for_a_retry() -> None:
    app, attempts = App("shop"), []

    @app.consume("orders", honor_times=True, retry=Retry(attempts=5, first="20s", jitter=0))
    def handle(value: int, record: Record) -> None:
        attempts.append(record.attempt)
        raise OSError("away")

    bench = Bench(app)
    bench.produce("orders", 1, expires="10s")
    bench.advance("5m")
    assert attempts == [1]
    assert len(bench.events_of(events.Expired)) == 1


def test_a_damaged_time_is_a_dead_letter_and_not_handled_too_early() -> None:
    app, seen = App("shop"), []

    @app.consume("orders", honor_times=True, dead_letter="dlq")
    def handle(value: int) -> None:
        seen.append(value)

    bench = Bench(app)
    bench.produce("orders", 1, headers={"penstock-not-before": "tomorrow"})
    bench.run_until_idle()
    assert seen == []
    (letter,) = bench.dead_letters("dlq")
    assert (letter.error_type, letter.error_message) == (
        "Undecodable", "the header penstock-not-before is not a time in milliseconds since 1970",
    )  # fmt: skip


def test_in_a_batch_only_the_records_whose_time_has_come_are_handled() -> None:
    app, calls = App("shop"), []

    @app.consume("orders", honor_times=True, batch=4, linger="1ms", order="none")
    async def handle(values: list[int]) -> None:
        calls.append(values)

    bench = Bench(app)
    bench.produce("orders", 1, not_before="1m")
    bench.produce("orders", 2)
    bench.produce("orders", 3, expires=START)
    bench.produce("orders", 4)
    bench.advance("1s")
    assert calls == [[2, 4]]
    bench.advance("2m")
    assert calls == [[2, 4], [1]]


def test_without_the_option_the_headers_mean_nothing() -> None:
    app, seen = App("shop"), []

    @app.consume("orders")
    def handle(value: int) -> None:
        seen.append(value)

    bench = Bench(app)
    bench.produce("orders", 1, not_before="10m")
    bench.produce("orders", 2, expires=START)
    bench.run_until_idle()
    assert seen == [1, 2]
