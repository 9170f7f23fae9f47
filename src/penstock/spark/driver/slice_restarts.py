"""When a slice that failed starts again, and when its handler has failed."""

import random

from penstock.app import Handler
from penstock.core.failures.restarts import Restarts
from penstock.core.records.record import TopicPartition
from penstock.errors import PenstockError


class SliceRestarts:
    """Counts the failures in a row of each partition."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._restarts: dict[TopicPartition, Restarts] = {}

    def succeeded(self, tp: TopicPartition) -> None:
        self._restarts.pop(tp, None)

    def failures(self, tp: TopicPartition) -> int:
        """Return how many slices of this partition failed in a row."""
        return self._restarts[tp].failures

    def failed(self, tp: TopicPartition, error: PenstockError, *, may_restart: bool) -> float | PenstockError:
        """Return after how many seconds the slice starts again, or the error of the handler."""
        restarts = self._restarts.setdefault(tp, Restarts(self._handler.restart))
        seconds = restarts.failed(random.random()) if may_restart else None  # noqa: S311 - no secret
        if seconds is not None:
            return seconds
        count = restarts.failures
        if count <= 1:
            return error
        problem = f"{error.problem} It failed {count} times in a row, with no slice finished in between."
        return type(error)(problem, hint=error.hint, traceback=error.traceback)
