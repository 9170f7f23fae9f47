"""Makes consumers and producers with the settings that Penstock's guarantees need."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer

from penstock.app import Handler
from penstock.core.scheduling.in_flight import client_bytes
from penstock.kafka.client.proven_producer import ProvenProducer
from penstock.kafka.client.settings_by_client import consumer_settings, producer_settings
from penstock.kafka.errors import translate

# librdkafka logs every refused connection, so its log is shown only on demand.
LOG = logging.getLogger("penstock.kafka")
LOG.addHandler(logging.NullHandler())
LOG.propagate = False

# Penstock's defaults; the user's settings override them.
CONSUMER_DEFAULTS: dict[str, Any] = {
    # How soon the client notices new partitions, and new topics that match a pattern; its default is 5 minutes.
    "topic.metadata.refresh.interval.ms": 10_000,
    # A resumed partition is fetched only after the broker has answered the fetch of the others, so limit that wait.
    "fetch.wait.max.ms": 100,
    # A client with a full buffer checks it again after this time; after the default of 1 s it is mostly empty.
    "fetch.queue.backoff.ms": 10,
    # Limits the client's buffer, in addition to max_in_flight. Small records use several times the counted memory.
    "queued.max.messages.kbytes": 4_096,
}
# A member learns of a rebalance in the answer to a heartbeat. The broker answers a connection in order, so a commit of
# the member that rejoins first waits until the last one has rejoined. With commit="record", all must learn of it soon.
_RECORD_HEARTBEAT_MS = 500
_MAX_MESSAGE_BYTES = 1_000_000_000  # the client's maximum
# How often the client emits statistics if Penstock reads them and the user has set no interval.
_STATISTICS_MS = 1_000
PRODUCER_DEFAULTS: dict[str, Any] = {
    "linger.ms": 5,
    "compression.type": "lz4",
    # The partitioner of Java's clients, so that every engine and client writes a key to the same partition.
    "partitioner": "murmur2_random",
}


def static_id(handler: Handler, number: int) -> str | None:
    """Return the static id of member ``number`` of this process."""
    return f"{handler.static_id}-{number}" if handler.static_id and handler.members > 1 else handler.static_id


def reader_settings(handler: Handler) -> dict[str, Any]:
    """Return the settings of a consumer that fetches for this handler outside the group."""
    return {} if handler.rack is None else {"client.rack": handler.rack}


def buffer_settings(handler: Handler) -> dict[str, Any]:
    """Return how much the client may buffer, as a part of ``max_in_flight_bytes``."""
    queue, answer = client_bytes(handler.max_in_flight_bytes)
    # The client accepts a single record that is larger.
    return {"queued.max.messages.kbytes": max(1, queue // 1024), "fetch.max.bytes": answer}


def member_settings(handler: Handler, number: int) -> dict[str, Any]:
    """Return the settings that make a consumer member ``number`` of this process in the handler's group."""
    if handler.is_self_managed:
        return reader_settings(handler)  # the member is self-managed, and the client only fetches
    settings: dict[str, Any] = {**reader_settings(handler), "group.protocol": handler.protocol}
    if handler.protocol == "classic":
        settings["partition.assignment.strategy"] = handler.assignor or "cooperative-sticky"
        if handler.commit == "record" and "heartbeat.interval.ms" not in handler.settings:
            settings["heartbeat.interval.ms"] = _RECORD_HEARTBEAT_MS
    elif handler.assignor is not None:
        settings["group.remote.assignor"] = handler.assignor
    name = static_id(handler, number)
    if name is not None:
        settings["group.instance.id"] = name
    return settings


def consumer_config(
    brokers: str, group: str, *, settings: Mapping[str, Any], member: Mapping[str, Any], reset: str
) -> dict[str, Any]:
    return {
        **CONSUMER_DEFAULTS,
        **consumer_settings(settings),
        **member,
        "bootstrap.servers": brokers,
        "group.id": group,
        "auto.offset.reset": reset,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        # The client reports the end of a partition with its offset, so that transaction markers count as read.
        "enable.partition.eof": True,
    }


def make_consumer(
    brokers: str,
    group: str,
    *,
    settings: Mapping[str, Any],
    member: Mapping[str, Any] | None = None,
    reset: str = "earliest",
    on_commit: Callable[..., None] | None = None,
    on_error: Callable[..., None] | None = None,
    on_statistics: Callable[[str], None] | None = None,
) -> Consumer:
    """Make a consumer. ``reset`` (auto.offset.reset) says what the client does if the log does not have an offset."""
    config = consumer_config(brokers, group, settings=settings, member=member or {}, reset=reset)
    if on_commit is not None:
        config["on_commit"] = on_commit
    if on_error is not None:
        config["error_cb"] = on_error
    if on_statistics is not None and not {"stats_cb", "statistics.interval.ms"} & config.keys():
        config |= {"stats_cb": on_statistics, "statistics.interval.ms": _STATISTICS_MS}
    try:
        return Consumer(config, logger=LOG)
    except KafkaException as error:
        raise translate(error, doing="creating a consumer", brokers=brokers, settings=settings) from error


def close_member(consumer: Any, *, owns_partitions: bool) -> None:
    """Close the consumer of a group member, so that it leaves its group.

    With a cooperative assignor and no partitions, ``close`` alone sends no LeaveGroup: the group would count the member
    until its session times out, and each rebalance in that time would wait for it.
    """
    if not owns_partitions:
        consumer.unsubscribe()
    consumer.close()


def _ignore(_error: object) -> None:
    pass


def make_producer(
    brokers: str,
    *,
    settings: Mapping[str, Any],
    transactional_id: str | None = None,
    on_error: Callable[..., None] | None = None,
    proven: bool = True,
    more: Mapping[str, Any] | None = None,
) -> Producer:
    """Make a producer. ``more`` are settings that the user must not choose.

    With ``proven=False``, the caller checks each delivery report with ``is_proven``. That is for producers on the hot
    path: a ``ProvenProducer`` takes half as much time again for each record. In a transaction the client notices a
    missing batch and fails the transaction.
    """
    config: dict[str, Any] = {
        **PRODUCER_DEFAULTS,
        **producer_settings(settings),
        **(more or {}),
        "bootstrap.servers": brokers,
        "enable.idempotence": True,
        "acks": "all",
    }
    if transactional_id is not None:
        # A record that fails makes the whole transaction fail, so delivery reports of single records are not needed.
        config |= {"transactional.id": transactional_id, "delivery.report.only.error": True}
    if on_error is not None:
        config["error_cb"] = on_error
    elif transactional_id is None:
        # Without a callback the client raises a fatal error from any call, as an object that is not an exception. The
        # delivery report of each record has the same error, so it can be ignored here.
        config["error_cb"] = _ignore
    try:
        return ProvenProducer(config, logger=LOG) if proven else Producer(config, logger=LOG)
    except KafkaException as error:
        raise translate(error, doing="creating a producer", brokers=brokers, settings=settings) from error


def make_alone_producer(brokers: str, settings: Mapping[str, Any]) -> Producer:
    """Make a producer that sends each record in a separate batch, so that the broker's answer is about that record.

    A consumed record may be larger than the client's default message.max.bytes, so only the broker's limit applies.
    """
    alone = {"message.max.bytes": _MAX_MESSAGE_BYTES, **settings, "batch.num.messages": 1}
    return make_producer(brokers, settings=alone, proven=False)
