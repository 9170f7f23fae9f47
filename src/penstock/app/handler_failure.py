"""From what a handler raised to the failure of its record. Both engines, all workers and the testing kit use this."""

from collections.abc import Callable

from penstock.app.handler import Handler
from penstock.app.record_adapter import RecordAdapter
from penstock.app.traceback_text import described
from penstock.core.failures.outcome import Failed, failed

Fail = Callable[[BaseException], Failed]


def failing(handler: Handler, adapter: RecordAdapter) -> Fail:
    """A function that takes whatever a handler raised, also what is no ``Exception``: a record must not get lost.

    What is none of the record's business, as ``reading`` says, is raised again.
    """
    retry, passes = handler.retry, adapter.passes

    def fail(error: BaseException) -> Failed:
        if passes(error):
            raise error
        message, traceback = described(error)
        return failed(error, retry, message=message, traceback=traceback)

    return fail
