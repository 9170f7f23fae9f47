"""Async handlers on the bench run concurrently, with the clock of the bench."""

import asyncio
import gc
from collections import defaultdict

import pytest

from penstock import App, Record, Retry
from penstock.errors import ConfigError
from penstock.testing import Bench


def test_a_handler_that_sleeps_wakes_when_the_clock_gets_there() -> None:
    app, done = App("shop"), []

    @app.consume("orders", order="none")
    async def handle(value: int) -> None:
        await asyncio.sleep(value)
        done.append(value)

    bench = Bench(app)
    for number in (3600, 1, 60):
        bench.produce("orders", number)
    bench.run_until_idle()
    assert done == []
    bench.advance("59s")
    assert done == [1]
    bench.advance("1s")
    assert done == [1, 60]
    bench.advance("1h")
    assert done == [1, 60, 3600]


def test_a_handler_is_in_progress_until_the_test_lets_it_continue() -> None:
    app, gate = App("shop"), asyncio.Event()
    running: list[int] = []

    @app.consume("orders", order="key", concurrency=3, commit="record")
    async def handle(value: int) -> None:
        running.append(value)
        await gate.wait()
        running.remove(value)

    bench = Bench(app)
    for number in range(5):
        bench.produce("orders", number, key=str(number))
    bench.run_until_idle()
    assert running == [0, 1, 2], "no more than the concurrency"
    gate.set()
    bench.run_until_idle()
    assert running == []
    assert bench.committed("orders") == {0: 5}


def test_a_key_runs_one_at_a_time_and_its_retry_holds_up_no_other() -> None:
    app, log = App("shop"), defaultdict(list)

    @app.consume("orders", order="key", retry=Retry(attempts=2, first="10s"))
    async def handle(value: int, record: Record) -> None:
        log[record.key].append((value, record.attempt))
        if value == 0 and record.attempt == 1:
            raise OSError("away")

    bench = Bench(app)
    for number in range(6):
        bench.produce("orders", number, key="ab"[number % 2])
    bench.run_until_idle()
    assert log == {b"a": [(0, 1)], b"b": [(1, 1), (3, 1), (5, 1)]}
    bench.advance("10s")
    assert log[b"a"] == [(0, 1), (0, 2), (2, 1), (4, 1)]


def test_a_timeout_is_in_the_bench_s_time() -> None:
    app = App("shop")

    @app.consume("orders", dead_letter="dlq", retry=Retry(attempts=1))
    async def handle(value: int) -> None:
        async with asyncio.timeout(30):
            await asyncio.Event().wait()

    bench = Bench(app)
    bench.produce("orders", 1)
    bench.advance("29s")
    assert bench.dead_letters("dlq") == []
    bench.advance("1s")
    assert [letter.error_type for letter in bench.dead_letters("dlq")] == ["TimeoutError"]


def test_real_threads_and_sockets_are_awaited() -> None:
    app, answers = App("shop"), []

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    @app.consume("orders")
    async def handle(value: str) -> None:
        answers.append(await asyncio.to_thread(value.upper))
        async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"over the wire\n")
            answers.append((await reader.readline()).decode().strip())
            writer.close()
            await writer.wait_closed()

    bench = Bench(app)
    bench.produce("orders", "in a thread")
    bench.run_until_idle()
    assert answers == ["IN A THREAD", "over the wire"]


def test_a_task_that_a_handler_started_continues_in_the_time_of_the_bench() -> None:
    app, tasks = App("shop"), []

    @app.consume("orders", commit="manual")
    async def handle(record: Record) -> None:
        async def later() -> None:
            await asyncio.sleep(5)
            record.ack()

        tasks.append(asyncio.get_running_loop().create_task(later()))

    bench = Bench(app)
    bench.produce("orders", 1)
    bench.advance("4s")
    assert bench.committed("orders") == {0: 0}
    bench.advance("1s")
    assert bench.committed("orders") == {0: 1}


def test_a_crash_in_an_async_handler() -> None:
    app, seen = App("shop"), []

    @app.consume("orders", commit="record")
    async def handle(value: int) -> None:
        seen.append(value)
        await asyncio.sleep(0)
        if seen == [1]:
            bench.crash()

    bench = Bench(app)
    bench.produce("orders", 1)
    bench.run_until_idle()
    assert bench.committed("orders") == {}
    bench.run_until_idle()
    assert seen == [1, 1]
    assert bench.committed("orders") == {0: 1}


def test_a_crash_ends_what_was_in_progress() -> None:
    app, log = App("shop"), []

    @app.consume("orders")
    async def handle(value: int, record: Record) -> None:
        log.append("began")
        await asyncio.sleep(10)
        log.append("ended")

    bench = Bench(app)
    bench.produce("orders", 1)
    bench.advance("9s")
    bench.crash()
    bench.advance("9s")
    assert log == ["began", "began"]
    bench.advance("1s")
    assert log == ["began", "began", "ended"]


def test_async_batches() -> None:
    app = App("shop")

    @app.consume("orders", batch=3, to="out")
    async def handle(values: list[int]) -> list[int]:
        await asyncio.sleep(1)
        return [sum(values)] * len(values)

    bench = Bench(app)
    for number in range(3):
        bench.produce("orders", number)
    bench.advance("1s")
    assert bench.outputs("out") == [3, 3, 3]


def test_a_bench_that_nobody_closes_leaves_nothing_open() -> None:
    app = App("shop")

    @app.consume("orders")
    async def handle(value: int) -> None:
        await asyncio.Event().wait()

    bench = Bench(app)
    bench.produce("orders", 1)
    bench.run_until_idle()
    del bench
    gc.collect()


def test_a_bench_that_nobody_closes_may_be_collected_while_another_loop_runs() -> None:
    app = App("shop")

    @app.consume("orders")
    async def handle(value: int) -> None:
        await asyncio.Event().wait()

    benches = [Bench(app)]
    benches[0].produce("orders", 1)
    benches[0].run_until_idle()

    async def collect() -> None:
        benches.clear()
        gc.collect()

    asyncio.run(collect())


def test_inside_another_event_loop_it_says_what_to_do() -> None:
    app = App("shop")

    @app.consume("orders", to="out")
    async def handle(value: int) -> int:
        return value

    async def test() -> list[int]:
        bench = Bench(app)
        bench.produce("orders", 1)
        with pytest.raises(ConfigError, match="another event loop is running") as caught:
            bench.run_until_idle()
        assert "asyncio.to_thread(bench.run_until_idle)" in caught.value.hint
        await asyncio.to_thread(bench.run_until_idle)
        return bench.outputs("out", int)

    assert asyncio.run(test()) == [1]
