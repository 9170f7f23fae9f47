"""Checks that a cluster works: which brokers answer, and whether a record can be written, read and committed."""

import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TypeVar

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.errors import ServerError
from penstock.kafka.admin.committed_offsets import CommittedOffsets
from penstock.kafka.client.clients import LOG, make_producer
from penstock.kafka.error_codes import Code

PROBE_NAME = "__penstock_probe"
_STEP_SECONDS = 5.0
_PAUSE_SECONDS = 0.1
_CLIENT = {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 250, "socket.timeout.ms": 5000}

T = TypeVar("T")


@dataclass(frozen=True)
class ClusterAnswer:
    """``brokers`` are the brokers in the cluster's metadata, by id."""

    cluster_id: str
    brokers: Mapping[int, str]


def ask_cluster(brokers: str, *, timeout: float) -> ClusterAnswer | None:
    """Return the cluster's id and brokers, or None if no broker answers in time."""
    admin = AdminClient({**_CLIENT, "bootstrap.servers": brokers}, logger=LOG)
    try:
        metadata = admin.list_topics(topic=PROBE_NAME, timeout=timeout)
    except KafkaException:
        return None
    alive = {broker.id: f"{broker.host}:{broker.port}" for broker in metadata.brokers.values()}
    return ClusterAnswer(str(metadata.cluster_id), alive)


def round_trip(brokers: str, *, timeout: float, before_retry: Callable[[], None]) -> None:
    """Write a record, read it and commit its offset, in a topic that is deleted afterwards.

    Each step is retried until the timeout, because coordinators are not ready right after a start. An exception of
    ``before_retry`` ends the retries.
    """
    deadline = time.monotonic() + timeout

    def retry(doing: str, step: Callable[[], T]) -> T:
        while True:
            try:
                return step()
            except (KafkaException, TimeoutError) as error:
                if time.monotonic() > deadline:
                    raise ServerError(
                        f"The brokers answer, but Penstock could not {doing} within {timeout:g} s: {error}.",
                        hint="Look at the brokers' logs. If the machine is very busy, try again.",
                    ) from error
            before_retry()
            time.sleep(_PAUSE_SECONDS)

    admin = AdminClient({**_CLIENT, "bootstrap.servers": brokers}, logger=LOG)
    retry("create a topic", lambda: _create_topic(admin))
    written = retry("write a record", lambda: _write(brokers))
    retry("read the record", lambda: _read(brokers, written))
    retry("commit an offset", lambda: _commit(brokers, written))
    _clean_up(admin)


def _create_topic(admin: AdminClient) -> None:
    # The brokers' default replication, as users' topics get it.
    wanted = NewTopic(PROBE_NAME, num_partitions=1, replication_factor=-1)
    try:
        admin.create_topics([wanted], operation_timeout=_STEP_SECONDS)[PROBE_NAME].result(_STEP_SECONDS)
    except KafkaException as error:
        # A probe that was killed has left the topic.
        if error.args[0].code() != Code.TOPIC_ALREADY_EXISTS:
            raise


def _write(brokers: str) -> TopicPartition:
    producer = make_producer(brokers, settings={**_CLIENT, "message.timeout.ms": int(_STEP_SECONDS * 1000)})
    reports: list[KafkaError | TopicPartition] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        reports.append(error or TopicPartition(PROBE_NAME, message.partition() or 0, message.offset() or 0))

    producer.produce(PROBE_NAME, b"probe", on_delivery=delivered)
    producer.flush(_STEP_SECONDS * 2)
    if reports and isinstance(reports[0], TopicPartition):
        return reports[0]
    raise KafkaException(reports[0] if reports else KafkaError(Code.LOCAL_MSG_TIMED_OUT))


def _read(brokers: str, written: TopicPartition) -> None:
    consumer = Consumer(
        {**_CLIENT, "bootstrap.servers": brokers, "group.id": PROBE_NAME, "enable.auto.commit": False}, logger=LOG
    )
    with closing(consumer):
        consumer.assign([written])
        message = consumer.poll(_STEP_SECONDS)
        if message is None:
            raise KafkaException(KafkaError(Code.LOCAL_TIMED_OUT))
        if failure := message.error():
            raise KafkaException(failure)


def _commit(brokers: str, written: TopicPartition) -> None:
    writer = CommittedOffsets(brokers, PROBE_NAME, settings=_CLIENT)
    try:
        writer.write({(written.topic, written.partition): (written.offset, "")}, seconds=_STEP_SECONDS)
    finally:
        writer.close()


def _clean_up(admin: AdminClient) -> None:
    """Delete the topic and the group. If that fails, the next probe deletes them."""
    with suppress(KafkaException, TimeoutError):
        admin.delete_topics([PROBE_NAME], operation_timeout=_STEP_SECONDS)[PROBE_NAME].result(_STEP_SECONDS)
    with suppress(KafkaException, TimeoutError):
        admin.delete_consumer_groups([PROBE_NAME])[PROBE_NAME].result(_STEP_SECONDS)
