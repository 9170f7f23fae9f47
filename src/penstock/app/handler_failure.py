"""From the error that a handler raised to the failure of its record. Both engines and the testing kit use this."""

from collections.abc import Callable

from penstock.app.handler import Handler
from penstock.app.record_adapter import RecordAdapter
from penstock.app.traceback_text import described
from penstock.core.failures.outcome import Failed, failed

Fail = Callable[[BaseException], Failed]


def failure_maker(handler: Handler, adapter: RecordAdapter) -> Fail:
    """A function that turns an error into a failure, also one that is no ``Exception``: no record may get lost.

    It raises the errors that ``adapter.reraises`` picks, such as a failed assertion of a test.
    """
    retry, reraises = handler.retry, adapter.reraises

    def fail(error: BaseException) -> Failed:
        if reraises(error):
            raise error
        message, traceback = described(error)
        return failed(error, retry, message=message, traceback=traceback)

    return fail
