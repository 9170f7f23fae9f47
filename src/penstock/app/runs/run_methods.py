"""The methods of ``App`` that run it in the user's own program."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from importlib import import_module
from types import TracebackType
from typing import Any, Self, Unpack

from penstock.app.dispatching.engine_threads import is_engine_thread
from penstock.app.runs.replay_options import ReplayResult
from penstock.app.runs.run_control import refuse_elsewhere, refuse_while_imported
from penstock.app.runs.run_options import RunOptions, checked_settings
from penstock.app.runs.run_slot import Run, RunSlot
from penstock.errors import StateError

# The engines are in higher layers, and take long to import. This name is the only reference from here to them.
_LIFECYCLE = "penstock.lifecycle"


class RunMethods:
    """Base of ``App``. ``run`` and ``serve`` run the app to its end; the other methods run it in the background.

    A failed app raises its error where it is awaited: in ``run``, ``serve`` and ``wait``, at the end of ``async with``,
    and in ``stop`` if nothing else has raised it before.
    """

    name: str

    def __init__(self) -> None:
        self._run_slot = RunSlot()
        self._contexts = _Contexts()

    @property
    def is_running(self) -> bool:
        """Whether the app runs in this process now: from its start until everything is committed and closed."""
        return self._run_slot.is_running

    @property
    def replay_result(self) -> ReplayResult | None:
        """What the latest run has replayed; None if it still runs, had no ``replay=``, or failed."""
        return self._run_slot.replay_result

    def run(self, **options: Unpack[RunOptions]) -> None:
        """Run the app until Ctrl+C or SIGTERM, until it has caught up (``until_caught_up=True``), or until it fails.

        With ``replay=Replay(...)`` it handles just that range and returns; ``app.replay_result`` has the counts.

        The first signal stops it cleanly, a second one ends the process at once. Call it on the main thread.
        """
        call = "app.run()"
        if threading.current_thread() is not threading.main_thread():
            raise StateError(
                f"{call} takes signals, which Python allows only on the main thread.",
                hint="On this thread, call app.start() and app.wait().",
            )
        if _has_running_loop():
            raise StateError(
                f"{call} would block the event loop that runs on this thread.",
                hint="Write `await app.serve()` or `async with app:`. In a notebook, app.start() works too.",
            )
        self._new_run(call, options).run_here()

    async def serve(self, **options: Unpack[RunOptions]) -> None:
        """Run the app in the background, and wait for its end without blocking the event loop.

        If the task is cancelled, the app stops cleanly first.
        """
        await asyncio.to_thread(_load_engine)
        run = self._new_run("app.serve()", options)
        run.start()
        await _until_ended(run)
        run.raise_failure()

    def start(self, **options: Unpack[RunOptions]) -> None:
        """Start the app in the background. Returns when it consumes, raises if it cannot start. Takes no signals."""
        run = self._new_run("app.start()", options)
        run.start()
        try:
            run.started.result()
        except BaseException:
            # The caller was interrupted. It does not expect an app that runs.
            run.ask_to_stop()
            raise
        run.raise_failure()

    def stop(self) -> None:
        """Stop the app cleanly: finish the records in progress, commit, leave the group. Twice is fine.

        Returns when the app has stopped. In a handler or a hook it only requests the stop and returns at once, because
        the stop waits for the handler.
        """
        run = self._get_run("app.stop()")
        run.ask_to_stop()
        if not is_engine_thread():
            run.ended.result()
            run.raise_failure(again=False)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end of the app, and raise its error if it failed. Returns False after ``timeout`` seconds."""
        run = self._get_run("app.wait()")
        if is_engine_thread():
            raise StateError(
                "app.wait() in a handler or a hook would wait for itself.",
                hint="Call it on a thread of your own program. A handler may call app.stop().",
            )
        try:
            run.ended.result(timeout)
        except TimeoutError:
            return False
        run.raise_failure()
        return True

    def running(self, **options: Unpack[RunOptions]) -> AbstractAsyncContextManager[Self]:
        """``async with app.running(brokers=...):`` runs the app during the block, like ``async with app:``."""
        return self._running("app.running()", options)

    @asynccontextmanager
    async def lifespan(self, _server: object = None, **options: Unpack[RunOptions]) -> AsyncIterator[None]:
        """The lifespan of an ASGI service: ``FastAPI(lifespan=app.lifespan)``, or ``Starlette(...)``."""
        async with self._running("app.lifespan()", options):
            yield

    async def __aenter__(self) -> Self:
        return await self._contexts.stack.enter_async_context(self._running("async with app", {}))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._contexts.stack.__aexit__(kind, error, trace)

    @asynccontextmanager
    async def _running(self, call: str, options: RunOptions) -> AsyncIterator[Self]:
        await asyncio.to_thread(_load_engine)
        run = self._new_run(call, options)
        run.start()
        try:
            await asyncio.wrap_future(run.started)
            if run.failure is None:
                yield self
        except BaseException as error:
            run.ask_to_stop()
            await _until_ended(run)
            if run.failure is not None:
                error.add_note(f"App {self.name!r} failed too: {run.failure}")
            raise
        run.ask_to_stop()
        await _until_ended(run)
        run.raise_failure()

    def _new_run(self, call: str, options: RunOptions) -> Run:
        refuse_elsewhere(call)
        refuse_while_imported(call)
        settings = checked_settings(options, of=call)
        if is_engine_thread():
            raise StateError(
                f"{call} was called in a handler or a hook, on a thread of an engine.",
                hint="Start apps in your own program, for example before app.wait().",
            )
        run: Run = _load_engine().AppRun(self, settings)
        return run

    def _get_run(self, call: str) -> Run:
        refuse_elsewhere(call)
        return self._run_slot.get(self.name, call)

    def hold_run(self, run: Run) -> None:
        """For ``penstock.lifecycle``: this run begins. Raises an error if another one has not ended."""
        self._run_slot.put(run, self.name)


def _load_engine() -> Any:
    """Import what runs apps. The first time takes a while, so programs with an event loop do it on another thread."""
    return import_module(_LIFECYCLE)


class _Contexts:
    """The ``async with app:`` block that is open. A pickled copy of an app is in no block."""

    def __init__(self) -> None:
        self.stack = AsyncExitStack()

    def __reduce__(self) -> tuple[type["_Contexts"], tuple[()]]:
        return (_Contexts, ())


async def _until_ended(run: Run) -> None:
    """Wait for the end of the run. If the task is cancelled, stop the app cleanly and then raise the cancellation."""
    try:
        await asyncio.wrap_future(run.ended)
    except asyncio.CancelledError:
        run.ask_to_stop()
        await asyncio.wrap_future(run.ended)
        raise


def _has_running_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
