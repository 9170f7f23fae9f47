"""on_start, on_stop and on_event of an app that runs: their order, their thread, their errors."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from kafka_helpers import wait_for
from lifecycle_fakes import WAIT_SECONDS, FakeEngine
from penstock import App
from penstock.app.runs.run_options import RunSettings
from penstock.errors import CallbackError, ConfigError, HandlerError
from penstock.events import (
    Assigned,
    DeadLettered,
    Error,
    Event,
    EventsDropped,
    Finished,
    HotKey,
    Paused,
    Rebalanced,
    Started,
    Stopped,
)
from penstock.lifecycle import AppRun, hook_thread

LETTER: dict[str, Any] = {"group": "shop", "member": "m", "topic": "orders", "partition": 0, "epoch": 1, "attempt": 1}


def letter(offset: int) -> DeadLettered:
    return DeadLettered(offset=offset, to="dlq", reason="bad", **LETTER)


def test_hooks_surround_the_engine_on_one_thread_with_one_event_loop(app: App, engine: FakeEngine) -> None:
    calls: list[str] = []
    places: set[Any] = set()

    def note(name: str) -> Callable[[], None]:
        def hook() -> None:
            calls.append(name)
            places.add(threading.current_thread())

        return hook

    app.on_start(note("start"))

    @app.on_start
    async def start_async() -> None:
        await asyncio.sleep(0)
        note("start async")()
        places.add(asyncio.get_running_loop())

    app.on_stop(note("stop"))

    @app.on_stop
    async def stop_async() -> None:
        note("stop async")()
        places.add(asyncio.get_running_loop())

    engine.before_start = lambda: calls.append("engine")
    engine.draining = lambda: calls.append("drained")
    app.start()
    app.stop()
    assert calls == ["start", "start async", "engine", "drained", "stop async", "stop"]
    assert len(places) == 2, "one thread and one loop"
    assert threading.current_thread() not in places


def test_tasks_that_a_hook_starts_run_until_the_end(app: App, engine: FakeEngine) -> None:
    ticked = threading.Event()
    cancelled: list[bool] = []
    tasks: list[asyncio.Task[None]] = []

    async def tick() -> None:
        try:
            while True:
                await asyncio.sleep(0.001)
                ticked.set()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    @app.on_start
    async def begin() -> None:
        tasks.append(asyncio.create_task(tick()))

    app.start()
    assert ticked.wait(WAIT_SECONDS)
    app.stop()
    assert cancelled == [True]


def test_a_start_hook_that_raises_stops_the_app_before_the_engine(app: App, engine: FakeEngine) -> None:
    calls: list[str] = []

    @app.on_start
    async def connect() -> None:
        raise ConnectionError("no database")

    app.on_start(lambda: calls.append("the next hook"))
    app.on_stop(lambda: calls.append("on_stop"))
    with pytest.raises(CallbackError, match="hook connect raised ConnectionError: no database") as raised:
        app.start()
    assert 'raise ConnectionError("no database")' in raised.value.traceback
    assert isinstance(raised.value.__cause__, ConnectionError)
    assert (engine.runs, calls) == ([], [])


def test_a_start_hook_that_exits_is_an_error_too(app: App, engine: FakeEngine) -> None:
    @app.on_start
    def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(CallbackError, match="The on_start hook leave raised SystemExit: 3"):
        app.start()


def test_a_stop_during_a_start_hook_starts_no_engine(app: App, engine: FakeEngine) -> None:
    entered, release = threading.Event(), threading.Event()
    calls: list[str] = []

    @app.on_start
    def connect() -> None:
        entered.set()
        assert release.wait(WAIT_SECONDS)

    app.on_stop(lambda: calls.append("closed"))
    run = AppRun(app, RunSettings())
    run.start()
    assert entered.wait(WAIT_SECONDS)
    run.ask_to_stop()
    release.set()
    app.wait()
    assert (engine.runs, calls) == ([], ["closed"])


def test_a_stop_hook_that_raises_fails_the_run_after_the_others(app: App, engine: FakeEngine) -> None:
    calls: list[str] = []
    app.on_stop(lambda: calls.append("closed"))

    @app.on_stop
    def flush() -> None:
        raise OSError("disk full")

    app.start()
    with pytest.raises(CallbackError, match="The on_stop hook flush raised OSError: disk full"):
        app.stop()
    assert calls == ["closed"]


def test_the_failure_of_the_app_comes_before_that_of_a_stop_hook(app: App, engine: FakeEngine) -> None:
    @app.on_stop
    def flush() -> None:
        raise OSError("disk full")

    app.start()
    engine.fail(HandlerError("record 7 failed"))
    with pytest.raises(HandlerError, match="record 7 failed") as raised:
        app.wait()
    assert "The on_stop hook flush raised OSError: disk full." in "".join(raised.value.__notes__)


def test_a_hook_that_never_ends_is_given_up_after_the_drain_timeout(engine: FakeEngine) -> None:
    app = App("shop", brokers="declared:9092")
    never = threading.Event()

    @app.consume("orders", drain_timeout="100ms")
    def handle(order: bytes) -> None: ...

    @app.on_stop
    def hang() -> None:
        never.wait(WAIT_SECONDS)

    app.start()
    with pytest.raises(CallbackError, match=r"did not end within 0\.1 s"):
        app.stop()
    never.set()


def test_listeners_get_the_events_that_they_named_in_order_before_on_stop(app: App, engine: FakeEngine) -> None:
    seen: list[Any] = []
    everything: list[Event] = []

    @app.on_event(Started, DeadLettered)
    async def listen(event: Event) -> None:
        await asyncio.sleep(0)
        seen.append(event)

    app.on_stop(lambda: seen.append("stop"))
    app.start(on_event=everything.append)
    for offset in range(100):
        engine.emit(letter(offset))
    engine.emit(Finished(offset=1, key=None, **LETTER))
    app.stop()
    assert isinstance(seen[0], Started)
    assert seen[1:] == [*(letter(offset) for offset in range(100)), "stop"]
    assert [type(each) for each in everything] == [Started, *[DeadLettered] * 100, Stopped]


def test_events_of_single_records_are_asked_for_only_if_a_listener_names_them(app: App, engine: FakeEngine) -> None:
    app.on_event(Event)(lambda event: None)
    app.start()
    app.stop()
    app.on_event(Finished)(lambda event: None)
    app.start()
    app.stop()
    assert [run["extras"].per_record for run in engine.runs] == [False, True]


def test_a_slow_listener_does_not_hold_up_the_engine_and_its_dropped_events_are_counted(
    app: App, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook_thread, "MOST_WAITING", 10)
    entered, release = threading.Event(), threading.Event()
    seen: list[Event] = []
    emitted: list[Event] = []

    @app.on_event(DeadLettered, EventsDropped)
    def listen(event: Event) -> None:
        entered.set()
        assert release.wait(WAIT_SECONDS)
        seen.append(event)

    run = AppRun(app, RunSettings(), emit=emitted.append)
    run.start()
    run.started.result(WAIT_SECONDS)
    engine.emit(letter(0))
    assert entered.wait(WAIT_SECONDS)
    for offset in range(1, 31):  # returns although the listener is stuck
        engine.emit(letter(offset))
    release.set()
    wait_for(lambda: EventsDropped(app="shop", dropped=20) in emitted, "the report")
    app.stop()
    assert [each.offset for each in seen if isinstance(each, DeadLettered)] == list(range(11))
    assert EventsDropped(app="shop", dropped=20) in seen


def test_a_listener_that_raises_is_reported_once_and_the_app_continues(app: App, engine: FakeEngine) -> None:
    emitted: list[Event] = []

    @app.on_event(DeadLettered, Error)
    def listen(event: Event) -> None:
        raise ValueError("broken")

    run = AppRun(app, RunSettings(), emit=emitted.append)
    run.start()
    run.started.result(WAIT_SECONDS)
    engine.emit(letter(1))
    engine.emit(letter(2))
    app.stop()
    (error,) = [each for each in emitted if isinstance(each, Error)]
    assert "The on_event hook listen raised ValueError: broken." in error.reason
    assert not error.fatal
    assert 'raise ValueError("broken")' in error.traceback


def test_a_hook_may_stop_the_app_and_not_start_one(app: App, engine: FakeEngine) -> None:
    errors: list[BaseException] = []

    @app.on_event(Started)
    def listen(event: Event) -> None:
        try:
            app.start()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            errors.append(error)
        app.stop()

    app.start()
    assert app.wait()
    assert "app.start() was called in a handler or a hook" in str(errors[0])


@pytest.mark.parametrize("kind", [HotKey, Paused, Rebalanced])
def test_on_spark_a_listener_to_what_spark_does_not_report_is_refused(app: App, kind: type[Event]) -> None:
    app.on_event(kind)(lambda event: None)
    with pytest.raises(ConfigError, match=f"listens to {kind.__name__}, which the Spark engine does not report"):
        app.start(engine="spark")


@pytest.mark.parametrize("kind", [DeadLettered, Finished, Assigned])
def test_on_spark_listeners_get_events_of_single_records_of_handlers_and_pipelines_have_none(
    app: App, engine: FakeEngine, kind: type[Event]
) -> None:
    app.on_event(kind)(lambda event: None)
    app.start(engine="spark")
    app.stop()
    assert engine.runs[0]["extras"].per_record == kind.per_record
    tables = App("tables")
    tables.pipeline("orders", to="copies")(lambda rows: rows)
    tables.on_event(kind)(lambda event: None)
    with pytest.raises(ConfigError, match=f"listens to {kind.__name__}, which a pipeline does not report"):
        tables.start(engine="spark")
