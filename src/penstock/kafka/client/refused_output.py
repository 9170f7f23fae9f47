"""What follows when the broker does not take an output, a dead letter or a retry record. Both engines use it."""

from dataclasses import replace

from confluent_kafka import KafkaError, KafkaException

from penstock.core.failures.dead_letter import shortened
from penstock.core.failures.outcome import Delayed, Failed, ProducerRecord
from penstock.core.scheduling.effects import Send
from penstock.core.text.plurals import counted
from penstock.errors import PenstockError
from penstock.kafka.error_codes import BAD_RECORD, Code
from penstock.kafka.errors import translate


def forms_of(send: Send) -> list[ProducerRecord]:
    """Return the forms to try one after the other: a dead letter or retry record also with shortened headers."""
    return [send.outgoing] if send.failure is None else [send.outgoing, shortened(send.outgoing)]


def final_failure(send: Send, error: KafkaError) -> Failed | None:
    """Return the final failure of the consumed record if the broker will never take ``send``; otherwise None.

    There is no other topic for a refused dead letter, so that one is no failure of the record: it stops the app.
    """
    is_dead_letter = send.failure is not None and send.delay is None
    # Only a handler names a partition; the client chooses among those that exist.
    is_bad_partition = error.code() == Code.LOCAL_UNKNOWN_PARTITION and send.outgoing.partition >= 0
    if not (error.code() in BAD_RECORD or is_bad_partition) or is_dead_letter:
        return None
    topic = send.outgoing.topic
    if send.failure is None:
        return Failed("OutputRefused", f"topic {topic} refused its output: {error.str()}", final=True)
    if isinstance(send.failure, Delayed):
        return Failed("OutputRefused", f"topic {topic} refused the record that was to wait: {error.str()}", final=True)
    message = f"{send.failure.message} (topic {topic} refused its retry record: {error.str()})"
    return replace(send.failure, message=message, final=True)


def undeliverable(send: Send, error: KafkaError, *, brokers: str) -> PenstockError:
    """Return the error for a record that could not be written."""
    topic, partition = send.tried.epoch.tp
    doing = f"writing the result of {topic}[{partition}]@{send.tried.offset} to topic {send.outgoing.topic}"
    inner = KafkaException(error)
    found = translate(inner, doing=doing, brokers=brokers)
    found.__cause__ = inner
    return found


def unknown_partition(out: ProducerRecord, partitions: int) -> KafkaError:
    """Return the error for an output to a partition that its topic does not have, as the client reports it."""
    return KafkaError(
        Code.LOCAL_UNKNOWN_PARTITION, f"it has {counted(partitions, 'partition')}, and no partition {out.partition}"
    )
