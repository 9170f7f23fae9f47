"""Consumers and producers with the settings that the guarantees need."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer

from penstock.kafka.failures import translate
from penstock.kafka.settings import consumer_settings, producer_settings

# librdkafka reports every refused connection on its own; ours to show only on demand.
LOG = logging.getLogger("penstock.kafka")
LOG.addHandler(logging.NullHandler())
LOG.propagate = False

# What Penstock sets unless a user's setting says otherwise.
CONSUMER_DEFAULTS: dict[str, Any] = {
    "partition.assignment.strategy": "cooperative-sticky",
    # A resumed partition waits for the broker's answer about the others, so that answer must not take long.
    "fetch.wait.max.ms": 100,
    # Once its buffer is full, the client looks again this soon; its own second would leave it empty for most of one.
    "fetch.queue.backoff.ms": 10,
    # Bounds what the client buffers on top of max_in_flight; small records take several times what it counts.
    "queued.max.messages.kbytes": 4_096,
}
PRODUCER_DEFAULTS: dict[str, Any] = {
    "linger.ms": 5,
    "compression.type": "lz4",
    # Java's choice, so that a key meets its partition whichever engine or client wrote it.
    "partitioner": "murmur2_random",
}


def make_consumer(
    brokers: str,
    group: str,
    *,
    settings: Mapping[str, Any],
    start: str = "earliest",
    on_commit: Callable[..., None] | None = None,
    on_error: Callable[..., None] | None = None,
) -> Consumer:
    chosen = consumer_settings(settings)
    config: dict[str, Any] = {
        **_consumer_defaults(chosen),
        **chosen,
        "bootstrap.servers": brokers,
        "group.id": group,
        "auto.offset.reset": start,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        # The end of a partition is reported with its offset, so that transaction markers count as read.
        "enable.partition.eof": True,
    }
    if on_commit is not None:
        config["on_commit"] = on_commit
    if on_error is not None:
        config["error_cb"] = on_error
    try:
        return Consumer(config, logger=LOG)
    except KafkaException as error:
        raise translate(error, doing="creating a consumer", brokers=brokers, settings=settings) from error


def make_producer(
    brokers: str, *, settings: Mapping[str, Any], on_error: Callable[..., None] | None = None
) -> Producer:
    config: dict[str, Any] = {
        **PRODUCER_DEFAULTS,
        **producer_settings(settings),
        "bootstrap.servers": brokers,
        "enable.idempotence": True,
        "acks": "all",
    }
    if on_error is not None:
        config["error_cb"] = on_error
    try:
        return Producer(config, logger=LOG)
    except KafkaException as error:
        raise translate(error, doing="creating a producer", brokers=brokers, settings=settings) from error


def _consumer_defaults(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """With the newer group protocol brokers assign, and the client refuses to hear how it should."""
    by_brokers = chosen.get("group.protocol") == "consumer"
    return {
        name: value
        for name, value in CONSUMER_DEFAULTS.items()
        if not (by_brokers and name == "partition.assignment.strategy")
    }
