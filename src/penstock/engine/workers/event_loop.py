"""An event loop on its own thread, for ``async def`` handlers."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

from penstock.app import end_task
from penstock.app.engine_threads import mark_engine_thread

_CLOSE_SECONDS = 1.0


class OnEventLoop:
    """Base class of workers that run on an event loop; other threads use ``self._loop.call_soon_threadsafe``."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._closing = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run_loop, name=f"{name}-event-loop", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Cancel the tasks in progress and end the loop."""
        self._closing = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=_CLOSE_SECONDS)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a task; only for the loop's thread. The set keeps the task alive: the loop holds tasks only weakly."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _run_loop(self) -> None:
        mark_engine_thread()
        asyncio.set_event_loop(self._loop)
        while True:
            try:
                self._loop.run_forever()
                break
            except (SystemExit, KeyboardInterrupt):
                # If a task that a handler started raises one of these, asyncio also raises it out of run_forever.
                if self._closing:
                    break
        for task in self._tasks:
            end_task(task)
        self._loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()
