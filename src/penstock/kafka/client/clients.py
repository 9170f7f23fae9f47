"""Consumers and producers with the settings that the guarantees need."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer

from penstock.app import Handler
from penstock.core.scheduling.in_flight import client_bytes
from penstock.kafka.client.settings_by_client import consumer_settings, producer_settings
from penstock.kafka.errors import translate

# librdkafka reports every refused connection on its own; ours to show only on demand.
LOG = logging.getLogger("penstock.kafka")
LOG.addHandler(logging.NullHandler())
LOG.propagate = False

# What Penstock sets unless a user's setting says otherwise.
CONSUMER_DEFAULTS: dict[str, Any] = {
    # How soon new partitions, and new topics that a pattern matches, are noticed; the client's own is 5 minutes.
    "topic.metadata.refresh.interval.ms": 10_000,
    # A resumed partition waits for the broker's answer about the others, so that answer must not take long.
    "fetch.wait.max.ms": 100,
    # A client with a full buffer looks again after this long; its own second would mostly find it empty.
    "fetch.queue.backoff.ms": 10,
    # Bounds what the client buffers on top of max_in_flight; small records take several times what it counts.
    "queued.max.messages.kbytes": 4_096,
}
# Members hear of a rebalance with their heartbeats. What the first to hear commits waits behind its own join until the
# last has joined: the broker answers a connection in order. So where each record is committed, all hear of it soon.
_RECORD_HEARTBEAT_MS = 500
_MAX_MESSAGE_BYTES = 1_000_000_000  # as much as the client allows
# How often the client says how it is, where we listen and the user does not.
_STATISTICS_MS = 1_000
PRODUCER_DEFAULTS: dict[str, Any] = {
    "linger.ms": 5,
    "compression.type": "lz4",
    # Java's choice, so that a key meets its partition whichever engine or client wrote it.
    "partitioner": "murmur2_random",
}


def static_id(handler: Handler, number: int) -> str | None:
    """Of one of its members; ``number`` tells those of one process apart."""
    return f"{handler.static_id}-{number}" if handler.static_id and handler.members > 1 else handler.static_id


def reader_settings(handler: Handler) -> dict[str, Any]:
    """What a consumer needs that fetches for this handler and is no member."""
    return {} if handler.rack is None else {"client.rack": handler.rack}


def buffer_settings(handler: Handler) -> dict[str, Any]:
    """How much the client may fetch ahead, as a part of ``max_in_flight_bytes``."""
    queue, answer = client_bytes(handler.max_in_flight_bytes)
    # Where a single record needs more, the client takes it all the same.
    return {"queued.max.messages.kbytes": max(1, queue // 1024), "fetch.max.bytes": answer}


def member_settings(handler: Handler, number: int) -> dict[str, Any]:
    """What makes a consumer this member of its handler's group; ``number`` tells those of one process apart."""
    if handler.is_open:
        return reader_settings(handler)  # the client only fetches then
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
        # The end of a partition is reported with its offset, so that transaction markers count as read.
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
    """``reset`` is what the client does by itself about an offset that the log does not have."""
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


def _leave_to_answers(_error: object) -> None:
    pass


def make_producer(
    brokers: str,
    *,
    settings: Mapping[str, Any],
    transactional_id: str | None = None,
    on_error: Callable[..., None] | None = None,
) -> Producer:
    config: dict[str, Any] = {
        **PRODUCER_DEFAULTS,
        **producer_settings(settings),
        "bootstrap.servers": brokers,
        "enable.idempotence": True,
        "acks": "all",
    }
    if transactional_id is not None:
        # What fails in a transaction fails it as a whole, so single answers need not be waited for.
        config |= {"transactional.id": transactional_id, "delivery.report.only.error": True}
    if on_error is not None:
        config["error_cb"] = on_error
    elif transactional_id is None:
        # Without anybody to hear of it, the client raises a fatal error wherever it is, and as no exception. Records
        # are refused because of it anyway, each with an answer.
        config["error_cb"] = _leave_to_answers
    try:
        return Producer(config, logger=LOG)
    except KafkaException as error:
        raise translate(error, doing="creating a producer", brokers=brokers, settings=settings) from error


def make_alone_producer(brokers: str, settings: Mapping[str, Any]) -> Producer:
    """A producer that sends each record by itself, so that the broker's answer is about that one.

    What came from a broker may be larger than what the client sends by its own default, so the broker decides.
    """
    alone = {"message.max.bytes": _MAX_MESSAGE_BYTES, **settings, "batch.num.messages": 1}
    return make_producer(brokers, settings=alone)
