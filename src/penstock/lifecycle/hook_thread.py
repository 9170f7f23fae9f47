"""The thread on which all hooks of one run are called, one at a time, with one event loop."""

import asyncio
import inspect
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from typing import Any

from penstock.app.dispatching.engine_threads import mark_engine_thread
from penstock.app.hooks import EventListener, Hooks, hook_error
from penstock.app.signature import function_name
from penstock.core.reports.events import Error, Event, EventsDropped
from penstock.errors import CallbackError

# So many events may wait for the listeners. Further ones are dropped and counted: the engine never waits.
MOST_WAITING = 10_000
_REPORT_SECONDS = 1.0
_STOP_CHECK_SECONDS = 0.1
_CLOSE_SECONDS = 1.0


class HookThread:
    """Call ``start``, then ``offer`` from any thread, then ``finish`` or ``close``.

    ``limit`` is how many seconds a stop waits for hooks. ``emit`` gets the events that this class reports itself.
    """

    def __init__(self, app: str, hooks: Hooks, emit: Callable[[Event], None], *, limit: float) -> None:
        self._app = app
        self._hooks = hooks
        self._emit = emit
        self._limit = limit
        self._lock = threading.Lock()
        # Under the lock: engine threads append, the hook thread takes.
        self._waiting: deque[Event] = deque()
        self._dropped = 0
        # Only the hook thread uses these.
        self._arrived = asyncio.Event()
        self._is_finishing = False
        self._next_report = 0.0
        self._failed: set[EventListener] = set()
        self._loop = asyncio.new_event_loop()
        self._listening: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name=f"{app}-hooks", daemon=True)

    def start(self, stop: threading.Event) -> None:
        """Call the hooks of ``on_start``. Raises the error of the first that fails; the others are not called.

        A hook that still runs ``limit`` seconds after ``stop`` was set is given up.
        """
        self._thread.start()
        self._listening = self._submit(self._listen())
        for hook in self._hooks.on_start:
            hint = "Fix it and start the app again. Nothing was consumed."
            calling, stopped_at = self._submit(_result_of(hook)), None
            while not wait([calling], _STOP_CHECK_SECONDS).done:
                now = time.monotonic()
                stopped_at = stopped_at or (now if stop.is_set() else None)
                if stopped_at is not None and now - stopped_at > self._limit:
                    calling.cancel()
                    raise CallbackError(
                        f"The on_start hook {function_name(hook)} still ran {self._limit:g} s after the stop.",
                        hint="Nothing was consumed. Give its waits a time limit.",
                    )
            if (error := calling.result()) is not None:
                raise hook_error("on_start", hook, error, hint=hint)

    def offer(self, event: Event) -> None:
        """Queue the event for the listeners that want it. Any thread may call it; it never waits for a listener."""
        if not any(each.wants(event) for each in self._hooks.listeners):
            return
        with self._lock:
            # The report about dropped events comes at most once a second, and is not dropped itself.
            if len(self._waiting) >= MOST_WAITING and not isinstance(event, EventsDropped):
                self._dropped += 1
                return
            self._waiting.append(event)
            is_first = len(self._waiting) == 1
        if is_first:
            self._loop.call_soon_threadsafe(self._arrived.set)

    def finish(self) -> CallbackError | None:
        """Let the listeners take the events that wait, then call the hooks of ``on_stop``. Returns what went wrong."""
        finishing: Future[CallbackError | None] = self._submit(self._finish())
        if wait([finishing], self._limit).done:
            return finishing.result()
        finishing.cancel()
        return CallbackError(
            f"The listeners and on_stop hooks of app {self._app!r} did not end within {self._limit:g} s.",
            hint="Give their waits a time limit, or raise drain_timeout.",
        )

    def close(self) -> None:
        """End the thread, unless a hook that never returns holds it."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSE_SECONDS)

    # The thread.

    def _run(self) -> None:
        mark_engine_thread()
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        for task in (tasks := asyncio.all_tasks(self._loop)):
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def _submit(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _listen(self) -> None:
        while not (self._is_finishing and not self._waiting):
            await self._arrived.wait()
            self._arrived.clear()
            while (event := self._take()) is not None:
                for listener in self._hooks.listeners:
                    if listener.wants(event):
                        await self._tell(listener, event)
                self._report_dropped()

    def _take(self) -> Event | None:
        with self._lock:
            return self._waiting.popleft() if self._waiting else None

    async def _tell(self, listener: EventListener, event: Event) -> None:
        error = await _result_of(lambda: listener.function(event))
        if error is not None and listener not in self._failed:
            # Only the first time: a listener to errors would otherwise report its own without end.
            self._failed.add(listener)
            hint = "Further errors of this listener are not reported."
            made = hook_error("on_event", listener.function, error, hint=hint)
            self._emit(Error(group=self._app, reason=str(made), fatal=False, traceback=made.traceback))

    def _report_dropped(self, *, at_once: bool = False) -> None:
        now = time.monotonic()
        if self._dropped and (at_once or now >= self._next_report):
            self._next_report = now + _REPORT_SECONDS
            with self._lock:
                dropped, self._dropped = self._dropped, 0
            self._emit(EventsDropped(app=self._app, dropped=dropped))

    async def _finish(self) -> CallbackError | None:
        self._is_finishing = True
        self._arrived.set()
        await asyncio.wrap_future(self._listening)
        self._report_dropped(at_once=True)
        first: CallbackError | None = None
        for hook in reversed(self._hooks.on_stop):
            if (error := await _result_of(hook)) is not None:
                made = hook_error("on_stop", hook, error, hint="The app itself has stopped, and committed its records.")
                first = first or made
        return first


async def _result_of(function: Callable[[], Any]) -> BaseException | None:
    """Call a hook and return what it raised. SystemExit in a task would otherwise end the loop."""
    try:
        result = function()
        if inspect.isawaitable(result):
            await result
    except BaseException as error:  # noqa: BLE001 - returned
        return error
    return None
