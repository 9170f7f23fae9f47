"""An engine without Kafka: it starts every handler, then does what the test says until the app stops."""

import threading
from collections.abc import Callable
from typing import Any

from penstock import App
from penstock.core.reports.events import Event, Started, Stopped

WAIT_SECONDS = 60.0


def started(app: App) -> list[Started]:
    return [
        Started(engine="local", group=each.group, handler=each.name, topics=each.topics, lag=0) for each in app.handlers
    ]


def runs(app: App) -> bool:
    """The same as ``app.is_running``. mypy assumes that the property does not change."""
    return app.is_running


def waits_for(event: threading.Event) -> Callable[[], None]:
    """A function that returns when the event is set."""

    def wait() -> None:
        assert event.wait(WAIT_SECONDS)

    return wait


class FakeEngine:
    """Replaces ``run_on_engine``. ``fail`` ends the run with that error; ``finish`` ends it as if it had caught up."""

    def __init__(self) -> None:
        self.runs: list[dict[str, Any]] = []
        self.emit: Callable[[Event], None] = lambda _event: None
        self.before_start: Callable[[], None] = lambda: None
        self.draining: Callable[[], None] = lambda: None
        self._error: BaseException | None = None
        self._finished = threading.Event()

    def fail(self, error: BaseException) -> None:
        self._error = error
        self._finished.set()

    def finish(self) -> None:
        self._finished.set()

    def __call__(self, app: App, settings: Any, *, emit: Any, stop: threading.Event, **options: Any) -> None:
        self.runs.append({"app": app, "settings": settings, "thread": threading.current_thread(), **options})
        self.emit = emit
        self.before_start()
        for event in started(app):
            emit(event)
        while not (stop.is_set() or self._finished.is_set()):
            stop.wait(0.01)
        self.draining()
        for handler in app.handlers:
            counts = {"read": 0, "written": 0, "dead_lettered": 0, "skipped": 0}
            emit(Stopped(group=handler.group, handler=handler.name, seconds=0.0, **counts))
        if self._error is not None:
            raise self._error
