"""The limit of ``timeout=`` around the function of a handler.

An ``async def`` handler is cancelled at the limit. A thread cannot be killed: its result is dropped when it returns
late. With ``workers="process"`` the parent kills the child (``engine/workers/worker_processes.py``).
"""

import asyncio
from collections.abc import Callable
from functools import wraps
from typing import Any

from penstock.app.attempts.record_adapter import RecordAdapter
from penstock.app.handler import Handler


def within_limit(handler: Handler, adapter: RecordAdapter) -> Callable[..., Any]:
    """The function of the handler, with its limit. Without ``timeout=``, it is the function itself."""
    if handler.timeout is None:
        return handler.function
    limited = _cancelled if handler.signature.is_async else _dropped_if_late
    return limited(handler.function, handler.timeout, adapter.clock)


def time_limit_error(limit: float, what_happened: str) -> TimeoutError:
    """The error of an attempt that took too long. The text tells it from a TimeoutError that the handler raises."""
    return TimeoutError(f"the handler took longer than its timeout of {limit:g} s: {what_happened}")


def _cancelled(function: Callable[..., Any], limit: float, _clock: object) -> Callable[..., Any]:
    @wraps(function)
    async def call(*arguments: Any) -> Any:
        try:
            async with asyncio.timeout(limit) as scope:
                result = await function(*arguments)
        except asyncio.CancelledError:
            raise  # somebody else cancelled the task, perhaps at the same moment
        except BaseException as error:
            if scope.expired():
                # The cancellation shows where the handler was; the TimeoutError that asyncio made of it says nothing.
                is_asyncios = isinstance(error, TimeoutError) and isinstance(error.__cause__, asyncio.CancelledError)
                where = error.__cause__ if is_asyncios else error
                raise time_limit_error(limit, "Penstock cancelled it") from where
            raise
        if scope.expired():
            raise time_limit_error(limit, "it suppressed its cancellation, and its result was dropped")
        return result

    return call


def _dropped_if_late(function: Callable[..., Any], limit: float, clock: Callable[[], float]) -> Callable[..., Any]:
    @wraps(function)
    def call(*arguments: Any) -> Any:
        began = clock()
        try:
            result = function(*arguments)
        except Exception as error:
            took = clock() - began
            if took > limit:
                raise time_limit_error(limit, f"it raised an error after {took:.1f} s") from error
            raise
        took = clock() - began
        if took > limit:
            raise time_limit_error(limit, f"it returned after {took:.1f} s, and its result was dropped")
        return result

    return call
