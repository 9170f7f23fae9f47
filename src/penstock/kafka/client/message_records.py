"""From the client's messages to records."""

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
    """A record that reads its message as it is looked at: few handlers look at everything, and each look costs.

    Only messages without an error come here, so nothing is missing.
    """

    __slots__ = ("_message",)
    _message: Message
    # One of Python's own would take as long as all else about a record: ``to_record`` sets its two fields.
    __init__ = object.__init__

    def __getattr__(self, name: str) -> Any:
        """Called once for each field; two threads may both come here, and write the same."""
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
    record._message = message  # noqa: SLF001 - in the place of a constructor
    record.attempt = attempt
    return record


# Messages travel through the engine as they are. A record is built from one when its handler is called, and is gone
# right after: thousands of them waiting would keep the garbage collector busier than the handlers.
MESSAGES = RecordAdapter(
    to_record=to_record,
    value_of=Message.value,
    offset_of=Message.offset,  # type: ignore[arg-type] # only of messages without an error, which have one
    key_of=Message.key,
    headers_of=Message.headers,  # type: ignore[arg-type] # values are bytes in what was consumed
    codec_of=codec_of,
)
