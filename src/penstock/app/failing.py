"""From what a handler raised to the failure of its record. Both engines, all workers and the testing kit use this."""

from collections.abc import Callable

from penstock.app.handler import Handler
from penstock.app.traceback_text import described
from penstock.core.outcome import Failed, failed

Fail = Callable[[BaseException], Failed]


def failing(handler: Handler) -> Fail:
    retry = handler.retry

    def fail(error: BaseException) -> Failed:
        message, traceback = described(error)
        return failed(error, retry, message=message, traceback=traceback)

    return fail
