"""From the client's messages to records."""

from confluent_kafka import Message

from penstock.core.record import Record


def to_record(message: Message) -> Record:
    """Written for speed: it runs for every record. Only messages without an error come here, so nothing is missing."""
    headers = message.headers()
    return Record(
        message.topic(),  # type: ignore[arg-type]
        message.partition(),  # type: ignore[arg-type]
        message.offset(),  # type: ignore[arg-type]
        message.key(),
        message.value(),
        tuple(headers) if headers else (),  # type: ignore[arg-type]
        message.timestamp()[1],
    )
