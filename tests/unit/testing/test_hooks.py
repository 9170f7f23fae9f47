"""Hooks of an app on the bench."""

import asyncio

import pytest

from penstock import App, Reject
from penstock.errors import CallbackError, ConfigError
from penstock.events import DeadLettered, Error, Event, Finished, Stopped
from penstock.testing import Bench


@pytest.fixture
def app() -> App:
    app = App("shop")

    @app.consume("orders", dead_letter="orders.dlq")
    def handle(order: int) -> None:
        if order < 0:
            raise Reject("negative")

    return app


def test_hooks_run_at_the_start_and_at_the_stop(app: App) -> None:
    calls: list[str] = []
    app.on_start(lambda: calls.append("first"))

    @app.on_start
    async def second() -> None:
        await asyncio.sleep(3)
        calls.append("second")

    app.on_stop(lambda: calls.append("last"))
    app.on_stop(lambda: calls.append("before the last"))
    bench = Bench(app)
    assert calls == []
    begin = bench.now
    bench.run_until_idle()
    bench.run_until_idle()
    assert calls == ["first", "second"]
    assert (bench.now - begin).total_seconds() == 3
    bench.stop()
    assert calls == ["first", "second", "before the last", "last"]
    bench.run_until_idle()
    assert calls[4:] == ["first", "second"]


def test_listeners_get_the_events_that_they_named(app: App) -> None:
    letters: list[int] = []
    kinds: list[type[Event]] = []

    @app.on_event(DeadLettered)
    async def note(event: DeadLettered) -> None:
        await asyncio.sleep(1)
        letters.append(event.offset)

    @app.on_event(Event, Finished)
    def collect(event: Event) -> None:
        kinds.append(type(event))

    bench = Bench(app)
    for value in (1, -1, 2, -2):
        bench.produce("orders", value)
    bench.run_until_idle()
    bench.stop()
    assert letters == [1, 3]
    assert kinds.count(Finished) == 2
    assert kinds[-1] is Stopped
    assert kinds == [type(each) for each in bench.events if not each.per_record or isinstance(each, Finished)]


def test_a_start_hook_that_raises_stops_the_app_before_a_record(app: App) -> None:
    @app.on_start
    def connect() -> None:
        raise ConnectionError("no database")

    bench = Bench(app)
    bench.produce("orders", 1)
    with pytest.raises(CallbackError, match="hook connect raised ConnectionError: no database") as raised:
        bench.run_until_idle()
    assert 'raise ConnectionError("no database")' in raised.value.traceback
    assert bench.events == []


def test_a_listener_that_raises_is_reported_once_and_the_app_continues(app: App) -> None:
    @app.on_event(DeadLettered, Error)
    def note(event: Event) -> None:
        raise ValueError("broken")

    bench = Bench(app)
    for _ in range(2):
        bench.produce("orders", -1)
        bench.run_until_idle()
    (error,) = bench.events_of(Error)
    assert "The on_event hook note raised ValueError: broken." in error.reason
    assert len(bench.dead_letters("orders.dlq")) == 2


def test_a_stop_hook_that_raises_is_an_error_of_the_stop_and_the_others_run(app: App) -> None:
    calls: list[str] = []
    app.on_stop(lambda: calls.append("closed"))

    @app.on_stop
    def flush() -> None:
        raise OSError("disk full")

    bench = Bench(app)
    bench.produce("orders", 1)
    bench.run_until_idle()
    with pytest.raises(CallbackError, match="The on_stop hook flush raised OSError: disk full"):
        bench.stop()
    assert calls == ["closed"]
    assert bench.committed("orders") == {0: 1}


def test_a_crash_calls_no_hook(app: App) -> None:
    calls: list[str] = []
    app.on_stop(lambda: calls.append("closed"))
    bench = Bench(app)
    bench.run_until_idle()
    bench.crash()
    assert calls == []


def test_a_hook_that_waits_forever_is_an_error(app: App) -> None:
    @app.on_start
    async def connect() -> None:
        await asyncio.Event().wait()

    with pytest.raises(ConfigError, match="The hook connect waits for something that does not happen on a bench"):
        Bench(app).run_until_idle()
