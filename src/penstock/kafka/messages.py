"""From the client's messages to records."""

from confluent_kafka import Message

from penstock.core.record import Record


def to_record(message: Message) -> Record:
    headers = message.headers()
    return Record(
        message.topic() or "",
        message.partition() or 0,
        message.offset() or 0,
        message.key(),
        message.value(),
        tuple(headers) if headers else (),  # type: ignore[arg-type]
        message.timestamp()[1],
    )
