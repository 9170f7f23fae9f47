"""Writes records made from lines of text, lines of JSON or a template."""

import json
import string
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from penstock.codecs.json_text import Encode
from penstock.core.failures.outcome import DependencyUnavailable, ProducerRecord
from penstock.errors import ConfigError, ServerError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.client.clients import make_producer
from penstock.kafka.client.proven_producer import OnDelivery
from penstock.kafka.error_codes import Code
from penstock.kafka.errors import translate

_FLUSH_SECONDS = 60.0
_PROGRESS_EVERY = 100
_BUFFER_SECONDS = 0.1


def from_lines(lines: Iterable[str], topic: str, *, separator: str | None) -> Iterator[ProducerRecord]:
    """Make one record a line. With a separator, the text before the first one is the key."""
    for line in lines:
        text = line.rstrip("\r\n")
        if separator and separator in text:
            key, _, value = text.partition(separator)
            yield ProducerRecord(topic, key.encode(), value.encode())
        else:
            yield ProducerRecord(topic, None, text.encode())


def from_json_lines(
    lines: Iterable[str], topic: str, *, name: str, as_bytes: Callable[[Any], bytes | None] | None = None
) -> Iterator[ProducerRecord]:
    """Make one record of each JSON line, with ``key``, ``value`` and ``headers`` as ``tail --json`` writes them."""
    value_of = as_bytes or encoded
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            read = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ConfigError(
                f"{name} line {number} is not JSON: {error}.", hint="Write one JSON object a line."
            ) from error
        headers = read.get("headers") or {} if isinstance(read, dict) else None
        if not isinstance(read, dict) or not isinstance(headers, dict) or not {"key", "value"} & set(read):
            raise ConfigError(
                f"{name} line {number} is not a record.", hint='Write {"key": "...", "value": ..., "headers": {}}.'
            )
        try:
            pairs = tuple((each, encoded(value)) for each, value in headers.items())
            yield ProducerRecord(topic, encoded(read.get("key")), value_of(read.get("value")), pairs)
        except ValueError as error:
            raise ConfigError(
                f"{name} line {number}: {error}.", hint="The value of hex must be pairs of the characters 0-9 and a-f."
            ) from error


def generated(count: int, topic: str, *, key: str | None, value: str) -> Iterator[ProducerRecord]:
    """Make records from templates with $n, $uuid and $now."""
    templates = string.Template(value), None if key is None else string.Template(key)
    for number in range(count):
        names = {"n": number, "uuid": uuid.uuid4(), "now": round(time.time() * 1000)}
        body, label = (None if each is None else each.safe_substitute(names).encode() for each in templates)
        yield ProducerRecord(topic, label, body)


def encoded(value: Any) -> bytes | None:
    """Encode text as UTF-8, ``{"hex": ...}`` as those bytes, and other values as JSON."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and set(value) == {"hex"} and isinstance(value["hex"], str):
        return bytes.fromhex(value["hex"])
    return json.dumps(value, ensure_ascii=False).encode()


def as_json_text(value: Any) -> bytes | None:
    """Encode any value as JSON; null stays null."""
    return None if value is None else json.dumps(value, ensure_ascii=False).encode()


def with_schema(records: Iterable[ProducerRecord], encode: Encode) -> Iterator[ProducerRecord]:
    """Encode the JSON values of records with a schema; null stays null."""
    for number, record in enumerate(records, start=1):
        if record.value is None:
            yield record
            continue
        try:
            value, headers = encode(json.loads(record.value))
        except (ValueError, TypeError, RecursionError) as error:
            raise ConfigError(
                f"The value of record {number} cannot be written with the schema: {error}.",
                hint="Correct this record. The records before it were written.",
            ) from error
        except DependencyUnavailable as error:
            raise ServerError(
                f"The schema is not available: {error}.",
                hint="Check that the schema registry is running. --register registers a missing schema.",
            ) from error
        # Replace schema headers that the record brought along: they name schemas of another registry.
        kept = tuple(each for each in record.headers if each[0] not in dict(headers))
        yield ProducerRecord(record.topic, record.key, value, (*kept, *headers))


def produce(
    cluster: Cluster,
    records: Iterable[ProducerRecord],
    *,
    partition: int | None = None,
    rate: float | None = None,
    progress: Callable[[int], None],
) -> int:
    """Write the records in order, wait until all are acknowledged, and return their number."""
    producer = make_producer(cluster.brokers, settings=cluster.settings)
    failures: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error)

    count, began = 0, time.monotonic()
    for each in records:
        _write(producer, each, -1 if partition is None else partition, on_delivery, cluster)
        count += 1
        if failures:
            break
        if count % _PROGRESS_EVERY == 0 or rate is not None:
            producer.poll(0)
            progress(count)
        if rate is not None:
            time.sleep(max(0.0, count / rate - (time.monotonic() - began)))
    failures = [*_flush(producer), *failures]
    if failures:
        raise translate(
            KafkaException(failures[0]), doing="writing", brokers=cluster.brokers, settings=cluster.settings
        )
    progress(count)
    return count


def _flush(producer: Producer) -> list[KafkaError]:
    """Wait for acknowledgements. Return why some are missing.

    After a fatal error of the client, delivery reports only say "purged".
    """
    deadline = time.monotonic() + _FLUSH_SECONDS
    try:
        # Not with `flush`: after a fatal error it calls the callback with the exception still set, which breaks it.
        while len(producer) and time.monotonic() < deadline:
            producer.poll(_BUFFER_SECONDS)
    except KafkaException as error:
        return [error.args[0]]
    return [KafkaError(Code.LOCAL_TIMED_OUT)] if len(producer) else []


def _write(producer: Producer, each: ProducerRecord, partition: int, on_delivery: OnDelivery, cluster: Cluster) -> None:
    """Give the record to the client; wait while its buffer is full. Partition -1 means: by the key."""
    while True:
        try:
            producer.produce(each.topic, each.value, each.key, partition, on_delivery, headers=list(each.headers))
        except BufferError:
            producer.poll(_BUFFER_SECONDS)
        except KafkaException as error:
            raise translate(error, doing=f"writing to {each.topic}", brokers=cluster.brokers) from error
        else:
            return
