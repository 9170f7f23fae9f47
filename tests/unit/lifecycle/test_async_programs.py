"""await app.serve(), async with app: and lifespans: an app in the background of an event loop."""

import asyncio
import threading
from typing import Any

import pytest

from kafka_helpers import wait_for
from lifecycle_fakes import WAIT_SECONDS, FakeEngine, runs
from penstock import App
from penstock.errors import HandlerError, ServerError, StateError


def test_serve_ends_when_the_app_has_caught_up(app: App, engine: FakeEngine) -> None:
    async def program() -> None:
        serving = asyncio.create_task(app.serve(until_caught_up=True))
        await asyncio.to_thread(wait_for, lambda: engine.runs, "the engine")
        engine.finish()
        await serving

    asyncio.run(program())
    assert engine.runs[0]["settings"].until_caught_up


def test_serve_raises_the_failure(app: App, engine: FakeEngine) -> None:
    engine.fail(HandlerError("record 7 failed"))
    with pytest.raises(HandlerError, match="record 7 failed"):
        asyncio.run(app.serve())


def test_a_cancelled_serve_drains_the_app_first(app: App, engine: FakeEngine) -> None:
    drained = threading.Event()
    engine.draining = drained.set

    async def program() -> None:
        serving = asyncio.create_task(app.serve())
        await asyncio.to_thread(wait_for, lambda: runs(app), "the engine")
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        assert drained.is_set()
        assert not runs(app)

    asyncio.run(program())


def test_the_app_runs_inside_of_the_block_and_the_loop_is_free(app: App, engine: FakeEngine) -> None:
    seen: list[str] = []
    loop_ran = threading.Event()

    def wait_for_the_loop() -> None:
        assert loop_ran.wait(WAIT_SECONDS), "the start or the stop of the app blocks the loop"
        loop_ran.clear()
        seen.append("waited")

    engine.before_start = engine.draining = wait_for_the_loop

    async def tick() -> None:
        while True:
            loop_ran.set()
            await asyncio.sleep(0.001)

    async def program() -> None:
        ticking = asyncio.create_task(tick())
        async with app as entered:
            assert entered is app
            assert runs(app)
        assert not runs(app)
        ticking.cancel()

    asyncio.run(program())
    assert seen == ["waited", "waited"]


def test_leaving_the_block_raises_the_failure(app: App, engine: FakeEngine) -> None:
    async def program() -> None:
        async with app:
            engine.fail(HandlerError("record 7 failed"))
            await asyncio.to_thread(wait_for, lambda: not runs(app), "the engine")

    with pytest.raises(HandlerError, match="record 7 failed"):
        asyncio.run(program())


def test_entering_the_block_raises_why_the_app_cannot_start(app: App, engine: FakeEngine) -> None:
    def fail() -> None:
        raise ServerError("no broker")

    engine.before_start = fail
    entered: list[bool] = []

    async def program() -> None:
        async with app:
            entered.append(True)

    with pytest.raises(ServerError, match="no broker"):
        asyncio.run(program())
    assert entered == []


def test_an_error_in_the_block_stops_the_app_and_names_its_failure_too(app: App, engine: FakeEngine) -> None:
    async def program() -> None:
        async with app:
            engine.fail(HandlerError("record 7 failed"))
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as raised:
        asyncio.run(program())
    assert raised.value.__notes__ == ["App 'shop' failed too: record 7 failed"]
    assert not runs(app)


def test_a_block_inside_of_the_block_is_refused(app: App, engine: FakeEngine) -> None:
    async def program() -> None:
        async with app:
            with pytest.raises(StateError, match="is running already"):
                async with app:
                    pass
            assert runs(app)
        assert not runs(app)
        async with app:
            assert runs(app)

    asyncio.run(program())
    assert len(engine.runs) == 2


def test_running_takes_options(app: App, engine: FakeEngine) -> None:
    async def program() -> None:
        async with app.running(brokers="call:9092") as entered:
            assert entered is app

    asyncio.run(program())
    assert engine.runs[0]["brokers"] == "call:9092"


def test_a_lifespan_gets_the_server_and_gives_no_state(app: App, engine: FakeEngine) -> None:
    async def program() -> Any:
        async with app.lifespan(object(), brokers="call:9092") as state:
            assert runs(app)
            return state

    assert asyncio.run(program()) is None
    assert engine.runs[0]["brokers"] == "call:9092"


def test_run_does_not_block_an_event_loop(app: App) -> None:
    async def program() -> None:
        app.run()

    with pytest.raises(StateError, match=r"app\.run\(\) would block the event loop.*await app\.serve\(\)"):
        asyncio.run(program())


def test_start_and_stop_work_beside_a_running_loop_as_in_a_notebook(app: App, engine: FakeEngine) -> None:
    async def cell() -> None:
        app.start()
        assert runs(app)
        app.stop()

    asyncio.run(cell())
    assert len(engine.runs) == 1
