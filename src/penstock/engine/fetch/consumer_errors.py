"""What an error of the consumer means: a new consumer may work, or the app must stop; and the text of the error."""

from confluent_kafka import KafkaError

from penstock.app import Handler
from penstock.errors import PenstockError, ServerError, TopicError
from penstock.kafka.error_codes import NOT_FINAL_WHILE_RUNNING, Code
from penstock.kafka.errors import is_final, kafka_error, translate

# Two members with the same static id would fence each other forever. A fatal error has its cause only in its text.
_FENCED = KafkaError(Code.FENCED_INSTANCE_ID).str()
# Only with the consumer protocol (KIP-848), where the older member keeps the static id.
_UNRELEASED = KafkaError(Code.UNRELEASED_INSTANCE_ID).str()


class StartOverError(Exception):
    """Replaces the consumer. The new one gets all partitions again, at their committed offsets."""

    def __init__(self, error: PenstockError) -> None:
        super().__init__(str(error))
        self.error = error


def is_final_while_running(error: KafkaError) -> bool:
    """Whether the app must stop, because neither the client's retries nor a new consumer can help."""
    return error.code() not in NOT_FINAL_WHILE_RUNNING and is_final(error)


def raise_if_final(error: Exception, handler: Handler) -> None:
    """Raise if a new consumer would fail in the same way."""
    inner = kafka_error(error)
    if inner is None:
        return
    if _FENCED in inner.str():
        raise ServerError(
            f"Another member of group {handler.group!r} has the static_id {handler.static_id!r}.",
            hint="Give each process its own static_id, or stop the process that uses this one.",
        )
    if _UNRELEASED in inner.str():
        raise ServerError(
            f"Group {handler.group!r} still has a member with the static_id {handler.static_id!r}.",
            hint="If that process was killed, start again after its session timeout (consumer.session.timeout.ms "
            "of the group, 45 s by default). If it is running, give each process its own static_id.",
        )
    if is_final_while_running(inner):
        raise error


def to_report(error: BaseException, handler: Handler, *, brokers: str, fatal: bool, doing: str = "") -> PenstockError:
    """Return the error that says what happened and what to do."""
    if isinstance(error, StartOverError):
        error = error.error
    if not isinstance(error, PenstockError):
        error = translate(error, doing=doing or f"consuming {handler.source}", brokers=brokers)
    if isinstance(error, TopicError) and not fatal:
        # It was there when the app started.
        return TopicError(
            f"A topic that the app consumes does not exist any more; it was probably deleted: {error.problem}",
            hint="Recreate it. The app then consumes its new records, beginning where start= says.",
        )
    return error
