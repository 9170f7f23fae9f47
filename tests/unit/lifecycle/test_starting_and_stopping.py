"""app.start(), app.stop() and app.wait(): an app in the background of a program without an event loop."""

import pickle
import signal
import threading
from concurrent.futures import Future
from typing import Any

import pytest

from lifecycle_fakes import WAIT_SECONDS, FakeEngine, runs, waits_for
from penstock import App, Replay
from penstock.app.dispatching.engine_threads import mark_engine_thread
from penstock.app.runs.replay_options import ReplayResult
from penstock.app.runs.run_control import NoControl
from penstock.errors import ConfigError, HandlerError, ServerError, StateError


def on_a_thread(call: Any) -> BaseException | None:
    """Call it on a thread of an engine, as a handler would; returns what it raised."""
    raised: list[BaseException] = []

    def work() -> None:
        mark_engine_thread()
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(WAIT_SECONDS)
    assert not thread.is_alive(), "the call did not return"
    return raised[0] if raised else None


def test_it_runs_in_the_background_until_it_is_stopped(app: App, engine: FakeEngine) -> None:
    assert not runs(app)
    app.start()
    assert runs(app)
    assert engine.runs[0]["app"] is app
    assert engine.runs[0]["thread"] is not threading.current_thread()
    assert not app.wait(timeout=0)
    app.stop()
    assert not runs(app)
    assert app.wait()


def test_start_returns_when_every_handler_has_started(app: App, engine: FakeEngine) -> None:
    released = threading.Event()
    engine.before_start = waits_for(released)
    starter = threading.Thread(target=app.start)
    starter.start()
    starter.join(0.1)
    assert starter.is_alive()
    released.set()
    starter.join(WAIT_SECONDS)
    assert not starter.is_alive()
    app.stop()


def test_stop_returns_when_the_app_is_drained(app: App, engine: FakeEngine) -> None:
    drained = threading.Event()
    engine.draining = drained.set
    app.start()
    app.stop()
    assert drained.is_set()


def test_a_second_stop_does_nothing(app: App, engine: FakeEngine) -> None:
    app.start()
    app.stop()
    app.stop()
    assert len(engine.runs) == 1


def test_one_app_can_run_twice_in_a_row(app: App, engine: FakeEngine) -> None:
    for _ in range(2):
        app.start()
        app.stop()
    assert len(engine.runs) == 2


def test_wait_returns_when_the_app_has_caught_up(app: App, engine: FakeEngine) -> None:
    app.start(until_caught_up=True)
    assert engine.runs[0]["settings"].until_caught_up
    engine.finish()
    assert app.wait()


def test_a_start_while_it_runs_is_refused(app: App, engine: FakeEngine) -> None:
    app.start()
    with pytest.raises(StateError, match=r"App 'shop' is running already in this process\. Stop it first"):
        app.start()
    assert runs(app)
    app.stop()
    assert len(engine.runs) == 1


@pytest.mark.parametrize("call", ["stop", "wait"])
def test_stop_and_wait_need_a_start(app: App, call: str) -> None:
    expected = rf"was not started in this process, so app\.{call}\(\) has nothing to act on\. Call app\.start\(\) first"
    with pytest.raises(StateError, match=expected):
        getattr(app, call)()


def test_a_handler_cannot_start_an_app_or_wait_for_one(app: App, engine: FakeEngine) -> None:
    error = on_a_thread(app.start)
    assert isinstance(error, StateError)
    assert "app.start() was called in a handler" in str(error)
    app.start()
    error = on_a_thread(app.wait)
    assert isinstance(error, StateError)
    assert "would wait for itself" in str(error)
    app.stop()


def test_a_handler_that_stops_its_app_does_not_wait_for_the_end(app: App, engine: FakeEngine) -> None:
    released = threading.Event()
    engine.draining = waits_for(released)
    app.start()
    assert on_a_thread(app.stop) is None
    assert runs(app)
    released.set()
    assert app.wait()


def test_a_process_that_only_runs_handlers_refuses(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.app.runs.run_control._elsewhere", NoControl("no", "never"))
    for call in (app.start, app.stop, app.wait, app.run):
        with pytest.raises(StateError, match="in a process that only runs handlers"):
            call()


def test_the_error_of_a_start_is_raised_by_start(app: App, engine: FakeEngine) -> None:
    def fail() -> None:
        raise ServerError("no broker")

    engine.before_start = fail
    with pytest.raises(ServerError, match="no broker"):
        app.start()
    assert not runs(app)
    app.stop()  # nothing is left to stop, and the error is known


def test_a_failure_is_raised_by_every_wait(app: App, engine: FakeEngine, caplog: pytest.LogCaptureFixture) -> None:
    app.start()
    engine.fail(HandlerError("record 7 failed"))
    for _ in range(2):
        with pytest.raises(HandlerError, match="record 7 failed"):
            app.wait()
    app.stop()
    assert "App 'shop' failed: record 7 failed" in caplog.text


def test_a_failure_that_nobody_has_seen_is_raised_by_stop_once(app: App, engine: FakeEngine) -> None:
    app.start()
    engine.fail(HandlerError("record 7 failed"))
    with pytest.raises(HandlerError, match="record 7 failed"):
        app.stop()
    app.stop()


def test_two_apps_run_at_the_same_time(engine: FakeEngine, app: App) -> None:
    other = App("other", brokers="declared:9092")

    @other.consume("orders")
    def handle(order: bytes) -> None: ...

    app.start()
    other.start()
    app.stop()
    assert (runs(app), runs(other)) == (False, True)
    other.stop()


def test_no_signal_handler_is_installed(app: App, engine: FakeEngine) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    app.start()
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    app.stop()


def test_the_brokers_of_the_call_come_first_then_the_environment_then_the_app(
    app: App, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PENSTOCK_BROKERS", raising=False)
    app.start()
    app.stop()
    monkeypatch.setenv("PENSTOCK_BROKERS", "environment:9092")
    app.start()
    app.stop()
    app.start(brokers="call:9092")
    app.stop()
    assert [run["brokers"] for run in engine.runs] == ["declared:9092", "environment:9092", "call:9092"]


def test_an_app_without_handlers_does_not_start() -> None:
    with pytest.raises(ConfigError, match="App 'empty' has no handlers"):
        App("empty").start(brokers="any:9092")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"broker": "a:1"}, r"app\.start\(\) has no option 'broker'\. Did you mean 'brokers'"),
        ({"engine": "flink"}, "has no engine 'flink'"),
        ({"brokers": ""}, "names no broker"),
        ({"brokers": 9092}, "names no broker"),
        ({"on_event": "print"}, "is not a function"),
        ({"replay": "2026-01-31"}, "is not a Replay"),
        ({"replay": Replay(), "until_caught_up": True}, "stops at the end of its range"),
        ({"replay": Replay(), "engine": "spark", "checkpoint": "here"}, "Only pipelines have checkpoints"),
        ({"master": "local[2]"}, 'master=, which needs engine="spark"'),
        ({"checkpoint": "here"}, 'checkpoint=, which needs engine="spark"'),
    ],
)
def test_a_wrong_option_is_an_error_that_names_it(app: App, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        app.start(**options)
    assert not runs(app)


def test_a_copy_in_another_process_is_not_running(app: App, engine: FakeEngine) -> None:
    plain = App("plain", brokers="declared:9092")
    plain.hold_run(_Endless())
    assert runs(plain)
    assert not runs(pickle.loads(pickle.dumps(plain)))


class _Endless:
    def __init__(self) -> None:
        self.started: Future[None] = Future()
        self.ended: Future[None] = Future()
        self.failure: BaseException | None = None
        self.replay_result: ReplayResult | None = None

    def start(self) -> None: ...
    def run_here(self) -> None: ...
    def ask_to_stop(self) -> None: ...
    def raise_failure(self, *, again: bool = True) -> None: ...
