"""Records that read the fields of the client's messages."""

from collections.abc import Callable
from typing import Any

from confluent_kafka import Message

from penstock.app import RecordAdapter
from penstock.codecs import codec_of
from penstock.core.records.record import Record, TopicPartition

_READ: dict[str, Callable[[Message], Any]] = {
    "topic": Message.topic,
    "partition": Message.partition,
    "offset": Message.offset,
    "key": Message.key,
    "value": Message.value,
    "headers": lambda message: tuple(message.headers() or ()),
    "timestamp_ms": lambda message: message.timestamp()[1],
    "_on_ack": lambda _message: None,
}


class MessageRecord(Record):
    """A record that reads a field from its message on first access: few handlers use all fields, and each read costs.

    The message has no error, so no field is missing.
    """

    __slots__ = ("_message",)
    _message: Message
    # A Python constructor would double the cost of a record, so ``to_record`` sets the two fields.
    __init__ = object.__init__

    def __getattr__(self, name: str) -> Any:
        """Read a field on its first access. Two threads may do so at once; both write the same value."""
        read = _READ.get(name)
        if read is None:
            raise AttributeError(f"a record has no {name!r}", name=name, obj=self)
        value = read(self._message)
        setattr(self, name, value)
        return value


def tp_of(message: Message) -> TopicPartition:
    return message.topic() or "", message.partition() or 0


def to_record(message: Message, attempt: int = 1) -> Record:
    record: MessageRecord = MessageRecord()
    record._message = message  # noqa: SLF001 - this function is the constructor
    record.attempt = attempt
    return record


# The engine queues messages, not records. It makes a record just before it calls the handler and drops it afterwards:
# with thousands of waiting records, the garbage collector would need more time than the handlers.
MESSAGES = RecordAdapter(
    to_record=to_record,
    value_of=Message.value,
    offset_of=Message.offset,  # type: ignore[arg-type] # None only in messages with an error
    key_of=Message.key,
    headers_of=Message.headers,  # type: ignore[arg-type] # header values of consumed messages are bytes
    codec_of=codec_of,
    topic_of=Message.topic,  # type: ignore[arg-type] # None only in messages with an error
)
