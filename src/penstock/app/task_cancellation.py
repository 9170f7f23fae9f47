"""Cancellations of the tasks that run async handlers: by Penstock, which ends them, and by the handlers themselves.

``task.cancelling()`` cannot tell the two apart. So Penstock marks a task before it cancels it.
"""

import asyncio
from typing import Any
from weakref import WeakSet

_ended: WeakSet[asyncio.Task[Any]] = WeakSet()


def end_task(task: asyncio.Task[Any]) -> None:
    """Cancel a task for good: the event loop is being closed, or a task of Spark ends."""
    _ended.add(task)
    task.cancel()


def is_ended(task: asyncio.Task[Any] | None) -> bool:
    return task in _ended


def raise_if_ended(error: BaseException) -> None:
    """What ends the task of an attempt goes on; every other cancellation is a failure of its record."""
    # Where no task runs, the coroutine is being thrown away.
    task = asyncio.current_task()
    if isinstance(error, asyncio.CancelledError | GeneratorExit) and (task is None or task in _ended):
        raise error


async def forget_cancellation() -> None:
    """After an attempt: a handler that cancelled its own task has not cancelled the attempts that follow in it."""
    task = asyncio.current_task()
    if task is None or not task.cancelling() or task in _ended:
        return
    try:
        await asyncio.sleep(0)  # where a cancellation arrives that was asked for and has not been raised yet
    except asyncio.CancelledError:
        if task in _ended:
            raise
    while task.uncancel():
        pass
