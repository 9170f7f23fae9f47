"""Hooks on the bench: called on the test's own thread, between the turns of the app."""

import inspect
from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from penstock.app import App
from penstock.app.hooks import EventListener, hook_error
from penstock.app.signature import function_name
from penstock.core.reports.events import Error, Event
from penstock.errors import CallbackError, ConfigError
from penstock.testing.world import World


class BenchHooks:
    """The hooks of one process of the app. Listeners get the events of a turn after it; none is ever dropped."""

    def __init__(self, app: App, world: World, events: Sequence[Event]) -> None:
        self._app = app
        self._world = world
        self._events = events
        self._delivered = len(events)
        self._failed: set[EventListener] = set()

    def start(self) -> None:
        for hook in self._app.hooks.on_start:
            if (error := self._call(hook, hook)) is not None:
                raise hook_error("on_start", hook, error, hint="Fix it. Nothing was consumed.")

    def deliver(self) -> None:
        """Give the new events to the listeners that want them."""
        while self._delivered < len(self._events):
            event = self._events[self._delivered]
            self._delivered += 1
            for listener in self._app.hooks.listeners:
                if listener.wants(event):
                    self._tell(listener, event)

    def stop(self) -> CallbackError | None:
        """Deliver the last events and call the hooks of ``on_stop``. Returns the first error."""
        self.deliver()
        first: CallbackError | None = None
        for hook in reversed(self._app.hooks.on_stop):
            if (error := self._call(hook, hook)) is not None:
                first = first or hook_error("on_stop", hook, error, hint="The app itself has stopped.")
        return first

    def _tell(self, listener: EventListener, event: Event) -> None:
        error = self._call(lambda: listener.function(event), listener.function)
        if error is not None and listener not in self._failed:
            self._failed.add(listener)
            hint = "Further errors of this listener are not reported."
            made = hook_error("on_event", listener.function, error, hint=hint)
            self._world.emit(Error(group=self._app.name, reason=str(made), fatal=False, traceback=made.traceback))

    def _call(self, call: Callable[[], Any], hook: Callable[..., Any]) -> Exception | None:
        """Call the hook to its end; while it sleeps, time passes. Returns what it raised."""
        try:
            result = call()
            if inspect.isawaitable(result):
                self._await(result, hook)
        except ConfigError:
            raise
        except Exception as error:  # noqa: BLE001 - returned
            return error
        return None

    def _await(self, result: Any, hook: Callable[..., Any]) -> None:
        loop, clock = self._world.loop, self._world.clock
        task = loop.create_task(_awaited(result))
        loop.settle()
        while not task.done():
            if loop.next_due == inf:
                task.cancel()
                raise ConfigError(
                    f"The hook {function_name(hook)} waits for something that does not happen on a bench.",
                    hint="Replace what it waits for in your test.",
                )
            clock.move_to(loop.next_due)
            loop.settle()
        task.result()


async def _awaited(result: Any) -> None:
    await result
