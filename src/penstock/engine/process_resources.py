"""The resources that are made once in this process: before anything is consumed, and closed after all handlers."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from queue import SimpleQueue

from penstock.app import Handler
from penstock.app.dispatching.engine_threads import mark_engine_thread
from penstock.app.resources import OpenResources, Resource, never_closed
from penstock.core.reports.events import Error, Event
from penstock.engine.workers.worker_resources import until_made
from penstock.errors import CallbackError


@contextmanager
def process_resources(
    app: str, handlers: Sequence[Handler], *, emit: Callable[[Event], None], stop: threading.Event
) -> Iterator[list[Handler]]:
    """Return the handlers with these resources. Worker processes make their own, so their handlers get none."""
    here = [each for each in handlers if each.workers != "process"]
    needed = {resource.name: resource for handler in here for resource in handler.wiring.of_process}
    if not needed:
        yield [*handlers]
        return
    limit = max(handler.drain_timeout for handler in handlers)
    thread = _ResourceThread(app, [*needed.values()])
    try:
        until_made(thread.made, stop, limit=limit, what=f"The resources of app {app!r}")
    except CallbackError as error:
        _report(app, error, emit)
        raise
    values = thread.values
    try:
        yield [each if each.workers == "process" else each.with_values(_of(each, values)) for each in handlers]
    except BaseException as error:
        problem = thread.close(limit)
        if problem is not None:
            _report(app, problem, emit)
            error.add_note(str(problem))
        raise
    problem = thread.close(limit)
    if problem is not None:
        _report(app, problem, emit)
        raise problem


def _of(handler: Handler, values: dict[str, object]) -> dict[str, object]:
    return {each.name: values[each.name] for each in handler.wiring.of_process}


def _report(app: str, error: CallbackError, emit: Callable[[Event], None]) -> None:
    emit(Error(group=app, reason=str(error), fatal=True, traceback=error.traceback))


class _ResourceThread:
    """Makes and closes resources on one thread, which is given up if that never ends."""

    def __init__(self, app: str, resources: Sequence[Resource]) -> None:
        self._resources = resources
        self._opened = OpenResources()
        self.made: Future[None] = Future()
        self._closed: Future[CallbackError | None] = Future()
        self._ending: SimpleQueue[None] = SimpleQueue()
        threading.Thread(target=self._run, name=f"{app}-resources", daemon=True).start()

    @property
    def values(self) -> dict[str, object]:
        return self._opened.values

    def close(self, limit: float) -> CallbackError | None:
        self._ending.put(None)
        if wait([self._closed], limit).done:
            return self._closed.result()
        names = ", ".join(each.name for each in self._resources)
        return never_closed(f"The resources of the process ({names})", limit)

    def _run(self) -> None:
        mark_engine_thread()
        try:
            self._opened.make(self._resources)
        except CallbackError as error:
            if not self.made.cancelled():
                self.made.set_exception(error)
            return
        if self.made.set_running_or_notify_cancel():
            self.made.set_result(None)
            self._ending.get()
        self._closed.set_result(self._opened.close())
