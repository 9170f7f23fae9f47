"""Tells apart who cancelled a task that runs an async handler: Penstock, which ends it, or the handler itself.

``task.cancelling()`` is the same for both. So Penstock marks a task before it cancels it.
"""

import asyncio
from typing import Any
from weakref import WeakSet

_ended: WeakSet[asyncio.Task[Any]] = WeakSet()


def end_task(task: asyncio.Task[Any]) -> None:
    """Cancel a task for good, because its event loop closes or its Spark task ends."""
    _ended.add(task)
    task.cancel()


def is_ended(task: asyncio.Task[Any] | None) -> bool:
    return task in _ended


def raise_if_ended(error: BaseException) -> None:
    """Raise the error if Penstock ends the task of this attempt; any other cancellation is a failure of the record."""
    # Without a running task, Python is closing the coroutine.
    task = asyncio.current_task()
    if isinstance(error, asyncio.CancelledError | GeneratorExit) and (task is None or task in _ended):
        raise error


async def forget_cancellation() -> None:
    """After an attempt: undo the cancellations of a handler that cancelled its own task, which runs more attempts."""
    task = asyncio.current_task()
    if task is None or not task.cancelling() or task in _ended:
        return
    try:
        await asyncio.sleep(0)  # raises a cancellation that was requested and not raised yet
    except asyncio.CancelledError:
        if task in _ended:
            raise
    while task.uncancel():
        pass
