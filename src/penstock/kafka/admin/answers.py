"""Waits for the answer to an admin request."""

from concurrent.futures import Future
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException

from penstock.kafka.error_codes import Code

T = TypeVar("T")

# A broker that does not answer a request in this time counts as unavailable.
ANSWER_SECONDS = 8.0
# The client itself ends a request after ANSWER_SECONDS. This is the limit for a request that it never ends.
_LOST_SECONDS = ANSWER_SECONDS * 2


def answer(future: "Future[T]") -> T:
    """Return the result. Raise a KafkaException if the broker refused the request, or if no answer came in time.

    The exception is a new one, and the one that the future keeps loses its traceback: that would refer to the frames of
    all callers, and these to the admin client. Its threads and connections would stay until Python's garbage collector
    finds the cycle.
    """
    try:
        return future.result(timeout=_LOST_SECONDS)
    except TimeoutError as error:
        raise KafkaException(KafkaError(Code.LOCAL_TIMED_OUT)) from error
    except KafkaException as error:
        error.__traceback__ = None
        raise KafkaException(*error.args) from None
