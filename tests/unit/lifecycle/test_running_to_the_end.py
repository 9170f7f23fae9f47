"""app.run(): blocks, takes signals, raises the failure."""

import os
import signal
import threading

import pytest

from lifecycle_fakes import FakeEngine, runs
from penstock import App
from penstock.errors import HandlerError, StateError


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_cleanly_and_the_handlers_are_restored(
    app: App, engine: FakeEngine, number: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    drained = threading.Event()
    engine.draining = drained.set
    engine.before_start = lambda: os.kill(os.getpid(), number)
    app.run()
    assert drained.is_set()
    assert engine.runs[0]["thread"] is threading.main_thread()
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before
    assert "Stopping cleanly." in capfd.readouterr().err


def test_it_raises_the_failure_and_does_not_log_it_too(
    app: App, engine: FakeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    engine.fail(HandlerError("record 7 failed"))
    with pytest.raises(HandlerError, match="record 7 failed"):
        app.run()
    assert not runs(app)
    assert caplog.text == ""


def test_another_thread_may_stop_it(app: App, engine: FakeEngine) -> None:
    engine.before_start = lambda: _stop_on_a_thread(app)
    app.run()
    assert not runs(app)


def _stop_on_a_thread(app: App) -> None:
    threading.Thread(target=app.stop, daemon=True).start()


def test_it_needs_the_main_thread(app: App, engine: FakeEngine) -> None:
    raised: list[BaseException] = []

    def call() -> None:
        try:
            app.run()
        except StateError as error:
            raised.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert "only on the main thread. On this thread, call app.start() and app.wait()." in str(raised[0])
    assert engine.runs == []
