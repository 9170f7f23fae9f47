"""Stops, crashes, rebalances and refused commits on the bench."""

import asyncio
from datetime import timedelta

import pytest

from penstock import App, Record, Retry
from penstock.core.reports import events
from penstock.testing import Bench


def counting_app(**options: object) -> tuple[App, list[int]]:
    app, seen = App("shop"), []

    @app.consume("orders", **options)  # type: ignore[arg-type]
    def handle(value: int) -> None:
        seen.append(value)

    return app, seen


def test_a_clean_stop_commits_and_the_next_start_repeats_nothing() -> None:
    app, seen = counting_app()
    bench = Bench(app)
    for number in range(3):
        bench.produce("orders", number)
    bench.run_until_idle()
    assert bench.committed("orders") == {}
    bench.stop()
    bench.stop()
    assert bench.committed("orders") == {0: 3}
    bench.produce("orders", 3)
    bench.run_until_idle()
    assert seen == [0, 1, 2, 3]
    (stopped,) = bench.events_of(events.Stopped)
    assert (stopped.read, stopped.seconds) == (3, 0)


def test_after_a_crash_what_was_not_committed_comes_again() -> None:
    app, seen = counting_app(commit_every="5s")
    bench = Bench(app)
    bench.produce("orders", 0)
    bench.advance("5s")
    bench.produce("orders", 1)
    bench.run_until_idle()
    bench.crash()
    bench.crash()
    assert bench.committed("orders") == {0: 1}
    bench.run_until_idle()
    assert seen == [0, 1, 1]


def test_a_crash_in_the_middle_of_a_handler_leaves_its_record_unfinished() -> None:
    app, seen = App("shop"), []

    @app.consume("orders", commit="record", to="out")
    def handle(value: int) -> int:
        seen.append(value)
        if seen.count(2) == 1 and value == 2:
            bench.crash()
        return value

    bench = Bench(app)
    for number in range(4):
        bench.produce("orders", number)
    bench.run_until_idle()
    assert seen == [0, 1, 2]
    assert bench.committed("orders") == {0: 2}
    bench.run_until_idle()
    assert seen == [0, 1, 2, 2, 3]
    assert bench.outputs("out") == [0, 1, 2, 3]


def test_the_offset_map_survives_a_crash() -> None:
    app = App("shop")
    seen: list[int] = []

    @app.consume("orders", order="key", retry=Retry(attempts=9, first="1h", limit="1h"))
    def handle(value: int, record: Record) -> None:
        if value == 0 and not seen.count(0):
            seen.append(0)
            raise OSError("away")
        seen.append(value)

    bench = Bench(app)
    for number in range(4):
        bench.produce("orders", number, key=str(number))
    bench.advance("1s")
    assert bench.committed("orders") == {0: 0}
    bench.crash()
    bench.run_until_idle()
    assert seen == [0, 1, 2, 3, 0]


def test_a_rebalance_drains_commits_and_starts_new_epochs() -> None:
    app, seen = counting_app()
    bench = Bench(app, partitions=2)
    for number in range(4):
        bench.produce("orders", number)
    bench.rebalance()
    assert bench.committed("orders") == {0: 2, 1: 2}
    assert sorted(seen) == [0, 1, 2, 3]
    assert [event.unfinished for event in bench.events_of(events.Revoked)] == [0, 0]
    bench.run_until_idle()
    assert len(bench.events_of(events.Assigned)) == 4
    bench.produce("orders", 4)
    bench.run_until_idle()
    assert sorted(seen) == [0, 1, 2, 3, 4]


def test_a_lost_partition_is_not_committed_and_comes_again() -> None:
    app, seen = App("shop"), []

    @app.consume("orders")
    def handle(value: int, record: Record) -> None:
        seen.append((record.partition, value))

    bench = Bench(app, partitions=2)
    for partition in range(2):
        bench.produce("orders", partition, partition=partition)
    bench.rebalance(lose=[("orders", 1)])
    bench.run_until_idle()
    assert sorted(seen) == [(0, 0), (1, 1), (1, 1)]
    assert bench.committed("orders") == {0: 1}
    assert [event.partition for event in bench.events_of(events.Lost)] == [1]


def test_a_rebalance_waits_for_records_in_progress_up_to_the_drain_timeout() -> None:
    app, seen = App("shop"), []

    @app.consume("orders", order="none", drain_timeout="30s")
    async def handle(value: int) -> None:
        await asyncio.sleep(value)
        seen.append(value)

    bench = Bench(app)
    start = bench.now
    bench.produce("orders", 10)
    bench.produce("orders", 100)
    bench.run_until_idle()
    assert seen == []
    bench.rebalance()
    assert bench.now - start == timedelta(seconds=30)
    assert seen == [10]
    assert bench.committed("orders") == {0: 1}
    assert [event.unfinished for event in bench.events_of(events.Revoked)] == [1]
    # The old epoch's handler still runs. Its late result is ignored, because the record is delivered again.
    bench.advance("75s")
    assert seen == [10, 100]
    bench.advance("1s")
    assert bench.committed("orders") == {0: 1}
    bench.advance("30s")
    assert seen == [10, 100, 100]
    assert bench.committed("orders") == {0: 2}


def test_a_refused_commit_is_made_good_by_the_next() -> None:
    app, _ = counting_app()
    bench = Bench(app)
    bench.produce("orders", 1)
    bench.refuse_commits()
    bench.advance("2s")
    assert bench.committed("orders") == {}
    assert len(bench.events_of(events.CommitFailed)) == 2
    bench.clear_faults()
    bench.advance("1s")
    assert bench.committed("orders") == {0: 1}


def test_a_crash_after_a_refused_last_commit_repeats_and_loses_nothing() -> None:
    app, seen = counting_app()
    bench = Bench(app)
    bench.produce("orders", 1)
    bench.refuse_commits()
    bench.run_until_idle()
    bench.stop()
    bench.clear_faults()
    bench.run_until_idle()
    assert seen == [1, 1]


def test_commits_keep_their_rhythm_over_a_long_wait() -> None:
    app = App("shop")

    @app.consume("orders", commit_every="1s", retry=Retry(attempts=2, first="1000.25s", limit="1h"))
    def handle(value: int, record: Record) -> None:
        if record.attempt == 1:
            raise OSError("away")

    bench = Bench(app)
    bench.produce("orders", 1)
    bench.advance("1000.9s")
    assert bench.committed("orders") == {0: 0}
    bench.advance("100ms")
    assert bench.committed("orders") == {0: 1}


def test_offsets_that_do_not_exist_are_passed() -> None:
    app, seen = counting_app()
    bench = Bench(app)
    bench.produce("orders", 0)
    bench.skip_offsets("orders", 3)
    bench.produce("orders", 1)
    bench.skip_offsets("orders")
    bench.run_until_idle()
    bench.stop()
    assert seen == [0, 1]
    assert bench.committed("orders") == {0: 6}
    assert bench.lag("orders") == 0


def test_latest_means_from_the_start_of_the_app_on() -> None:
    app, seen = counting_app(start="latest")
    bench = Bench(app)
    bench.produce("orders", 0)
    assert bench.lag("orders") == 0
    bench.run_until_idle()
    bench.produce("orders", 1)
    bench.run_until_idle()
    assert seen == [1]


def test_a_partition_in_backoff_does_not_take_the_room_of_others() -> None:
    app, seen = App("shop"), []

    @app.consume("orders", max_in_flight=20, retry=Retry(attempts=2, first="1h", limit="1h"))
    def handle(value: int, record: Record) -> None:
        if record.partition == 0 and record.attempt == 1:
            raise OSError("away")
        seen.append((record.partition, value))

    bench = Bench(app, partitions=2)
    for partition in range(2):
        for number in range(100):
            bench.produce("orders", number, partition=partition)
    bench.advance("5s")
    assert [value for partition, value in seen if partition == 1] == list(range(100))
    assert [event.partition for event in bench.events_of(events.Paused)] == [0]
    for _ in range(100):
        bench.advance("1h")
    assert [value for partition, value in seen if partition == 0] == list(range(100))
    assert bench.committed("orders") == {0: 100, 1: 100}


def test_large_values_stay_in_kafka_until_there_are_bytes_for_them() -> None:
    app, held = App("shop"), []

    @app.consume("scans", order="none", commit="manual", max_in_flight_bytes=1_000_000)
    def hold(value: bytes, record: Record) -> None:
        held.append((record, len(value)))

    bench = Bench(app, partitions=1)
    for size in [100_000] * 30 + [3_000_000] * 2:
        bench.produce("scans", bytes(size))
    most, sizes = 0, list[int]()
    while held or not sizes:
        bench.run_until_idle()
        most = max(most, sum(size for _, size in held if size < 1_000_000))
        assert all(size < 1_000_000 for _, size in held[:-1]), (
            "no record is delivered together with a value that exceeds the limit"
        )
        for record, size in held:
            sizes.append(size)
            record.ack()
        held.clear()
        bench.run_until_idle()
    assert sizes == [100_000] * 30 + [3_000_000] * 2
    assert 500_000 < most <= 1_000_000


@pytest.mark.parametrize("order", ["partition", "key", "none"])
def test_the_same_test_always_runs_the_same_way(order: str) -> None:
    def course() -> list[events.Event]:
        app = App("shop")

        @app.consume("orders", order=order, to="out", dead_letter="dlq", retry=Retry(attempts=2))  # type: ignore[arg-type]
        def handle(value: int) -> int:
            if value % 3 == 0:
                raise ValueError("three")
            return value

        bench = Bench(app, partitions=3)
        for number in range(60):
            bench.produce("orders", number, key=str(number % 7))
        bench.advance("10s")
        return bench.events

    first = course()
    assert first == course()
    assert len(first) > 100
