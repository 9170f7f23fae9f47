"""From what a handler raised to the outcome of its record. Both engines and the testing kit use this."""

from collections.abc import Callable

from penstock.app.attempts.record_adapter import RecordAdapter
from penstock.app.attempts.traceback_text import described
from penstock.app.handler import Handler
from penstock.core.failures.later import Later
from penstock.core.failures.outcome import Delayed, Failed, failed
from penstock.errors import HandlerBug

Fail = Callable[[BaseException], Failed | Delayed]


def failure_maker(handler: Handler, adapter: RecordAdapter) -> Fail:
    """A function that turns an error into a failure, also one that is no ``Exception``: no record may get lost.

    It raises the errors that ``adapter.reraises`` picks, such as a failed assertion of a test. ``Later`` is no failure.
    """
    retry, breaker, reraises, wall_clock = handler.retry, handler.breaker, adapter.reraises, adapter.wall_clock
    cannot_wait = _why_records_cannot_wait(handler)

    def fail(error: BaseException) -> Failed | Delayed:
        if reraises(error):
            raise error
        if isinstance(error, Later):
            if not cannot_wait:
                now = wall_clock()
                wait = error.seconds_from(now)
                return Delayed(wait, now + wait, str(error))
            error = HandlerBug(f"the handler raised Later, but {cannot_wait}")
        message, traceback = described(error)
        return failed(error, retry, message=message, traceback=traceback, breaker=breaker)

    return fail


def _why_records_cannot_wait(handler: Handler) -> str:
    """Why a record of this handler can never be handed out again after a time; empty if it can."""
    if handler.is_at_most_once:
        return "with at-most-once a record is committed before its only attempt"
    return "the broker decides when it redelivers a record of a share group" if handler.is_shared else ""
