"""One run of an app, from its start to its end, on the calling thread or on a thread of its own."""

import atexit
import logging
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial

from penstock.app import App, Handler, Pipeline
from penstock.app.hooks import Hooks
from penstock.app.routing.route_reports import routed_events
from penstock.app.runs.replay_options import ReplayResult
from penstock.app.runs.run_options import RunSettings
from penstock.core.reports.events import Error, Event, RangeRead, Started, Stopped
from penstock.errors import CallbackError, ConfigError
from penstock.lifecycle.brokers import brokers_in_program
from penstock.lifecycle.engine_choice import RunExtras, refuse_listeners, run_on_engine
from penstock.lifecycle.hook_thread import HookThread
from penstock.lifecycle.range_replay import RangeReplay, begin_replay
from penstock.lifecycle.stop_signals import stop_on_signals

_LOG = logging.getLogger("penstock")
_STANDARD_ERROR = 2


class AppRun:
    """Implements ``penstock.app.runs.run_slot.Run``. Use it once: call ``start``, ``run_here`` or ``run_beside``.

    ``emit`` gets every event, on the threads of the engine. The thread that runs the app writes ``failure`` before it
    completes ``started`` and ``ended``, and ``replay_result`` before ``ended``, so a thread that waited may read them.
    """

    def __init__(
        self,
        app: App,
        settings: RunSettings,
        *,
        emit: Callable[[Event], None] = lambda _event: None,
        stop: threading.Event | None = None,
        extras: RunExtras | None = None,
    ) -> None:
        self.started, self.ended = _uncancellable(), _uncancellable()
        self.failure: BaseException | None = None
        self.replay_result: ReplayResult | None = None
        self._failure_was_raised = False
        self._app = app
        self._settings = settings
        self._emit = emit
        self._stop = stop or threading.Event()
        self._extras = extras or RunExtras()
        self._not_started = set[tuple[str, str]]()
        self._ranges: Sequence[RangeRead] = ()
        self._stopped: list[Stopped] = []  # of a replay
        self._process = os.getpid()
        self._hook_thread: HookThread | None = None

    def start(self) -> None:
        self._app.hold_run(self)
        # A daemon, like the engine's threads: the exit of the program stops the app cleanly, see _stop_at_exit.
        thread = threading.Thread(target=self._run_in_background, name=f"{self._app.name}-run", daemon=True)
        atexit.register(self._stop_at_exit)
        thread.start()

    def run_here(self) -> None:
        with stop_on_signals(self._stop, _say):
            self.run_beside()

    def run_beside(self) -> ReplayResult | None:
        """Run on the calling thread, beside listeners and signal handlers that the caller has set up."""
        self._app.hold_run(self)
        self._execute()
        self.ended.set_result(None)
        self.raise_failure()
        return self.replay_result

    def ask_to_stop(self) -> None:
        self._stop.set()

    def raise_failure(self, *, again: bool = True) -> None:
        if self.failure is not None and (again or not self._failure_was_raised):
            self._failure_was_raised = True
            raise self.failure

    def _run_in_background(self) -> None:
        has_started = self._execute()
        if has_started and self.failure is not None:
            # The program may await the app only much later.
            _LOG.error("App %r failed: %s", self._app.name, self.failure)
        self.ended.set_result(None)
        atexit.unregister(self._stop_at_exit)

    def _execute(self) -> bool:
        """Run the app to its end. Return whether it had started."""
        try:
            self._run_app()
        except BaseException as failure:  # noqa: BLE001 - raised where the app is awaited
            self.failure = failure
        has_started = self.started.done()
        if not has_started:
            self.started.set_result(None)
        return has_started

    def _run_app(self) -> None:
        app, settings = self._app, self._settings
        if not app.handlers and not app.pipelines:
            raise ConfigError(f"App {app.name!r} has no handlers.", hint='Declare one with @app.consume("topic").')
        app.wired_handlers()  # before any hook runs: raises if a resource is missing
        hooks = app.hooks.listening(settings.on_event)
        refuse_listeners(app, hooks, settings.engine)
        brokers = brokers_in_program(settings.brokers, app.brokers)
        extras = replace(self._extras, per_record=self._extras.per_record or hooks.per_record)
        run = partial(
            run_on_engine, app, settings, brokers=brokers, emit=self._on_event, stop=self._stop, extras=extras
        )
        if extras.replay is not None:
            self._run_replay(extras.replay, hooks, run)
        elif settings.replay is not None:
            with app.restored():
                self._run_replay(begin_replay(app, brokers, settings.replay), hooks, run)
            if self.replay_result is not None and self.replay_result.problem is not None:
                _LOG.warning("App %r: %s", app.name, self.replay_result.problem)
        else:
            self._run_once(hooks, run)

    def _run_replay(self, replay: RangeReplay, hooks: Hooks, run: Callable[[], None]) -> None:
        self._ranges = replay.ranges
        if replay.left:
            self._run_once(hooks, run)
        self.replay_result = replay.result(self._stopped)

    def _run_once(self, hooks: Hooks, run: Callable[[], None]) -> None:
        if hooks:
            self._run_with_hooks(hooks, run)
        else:
            self._run_engine(run)

    def _run_engine(self, run: Callable[[], None]) -> None:
        app = self._app
        # An engine emits Started for each of these; a pipeline with several outputs emits several, with other names.
        self._not_started = {(each.group, each.name) for each in app.handlers}
        for event in (*self._ranges, *routed_events(app.handlers)):
            self._on_event(event)
        run()

    def _run_with_hooks(self, hooks: Hooks, run: Callable[[], None]) -> None:
        declared: list[Handler | Pipeline] = [*self._app.handlers, *self._app.pipelines]
        limit = max(each.drain_timeout for each in declared)
        thread = self._hook_thread = HookThread(self._app.name, hooks, self._on_event, limit=limit)
        failure: BaseException | None = None
        try:
            thread.start(self._stop)
            try:
                if not self._stop.is_set():
                    self._run_engine(run)
            except BaseException as error:  # noqa: BLE001 - raised after on_stop
                failure = error
            failed_hook = thread.finish()
        except CallbackError as error:
            failed_hook = error
        finally:
            thread.close()
        if failed_hook is not None:
            traceback = failed_hook.traceback
            self._emit(Error(group=self._app.name, reason=str(failed_hook), fatal=True, traceback=traceback))
        if failure is None:
            failure = failed_hook
        elif failed_hook is not None:
            failure.add_note(str(failed_hook))
        if failure is not None:
            raise failure

    def _on_event(self, event: Event) -> None:
        self._emit(event)
        if self._hook_thread is not None:
            self._hook_thread.offer(event)
        if self._ranges and isinstance(event, Stopped):
            self._stopped.append(event)
        if isinstance(event, Started) and not self.started.done():
            self._not_started.discard((event.group, event.handler))
            if not self._not_started:
                self.started.set_result(None)

    def _stop_at_exit(self) -> None:
        """Stop cleanly when the program ends without ``app.stop()``. A forked child has no thread to wait for."""
        if os.getpid() == self._process:
            self.ask_to_stop()
            self.ended.result()


def _uncancellable() -> Future[None]:
    """Return a future that a cancelled ``await`` cannot cancel: the run continues, and completes it."""
    future = Future[None]()
    future.set_running_or_notify_cancel()
    return future


def _say(line: str) -> None:
    # A signal may arrive while the main thread writes to sys.stderr, whose buffer refuses a second writer.
    os.write(_STANDARD_ERROR, f"{line}\n".encode())
