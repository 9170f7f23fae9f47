"""From the client's messages to records."""

from confluent_kafka import Message

from penstock.app import Reading
from penstock.core.record import Record


def to_record(message: Message, attempt: int = 1) -> Record:
    """Written for speed: it runs for every record. Only messages without an error come here, so nothing is missing."""
    return Record(
        message.topic(),  # type: ignore[arg-type]
        message.partition(),  # type: ignore[arg-type]
        message.offset(),  # type: ignore[arg-type]
        message.key(),
        message.value(),
        (),
        -1,
        attempt,
        message,  # type: ignore[arg-type]
    )


# Messages travel through the engine as they are. A record is built from one when its handler is called, and is gone
# right after: thousands of them waiting would keep the garbage collector busier than the handlers.
MESSAGES = Reading(
    to_record=to_record,
    value_of=Message.value,
    offset_of=Message.offset,  # type: ignore[arg-type] # only of messages without an error, which have one
    key_of=Message.key,
)
