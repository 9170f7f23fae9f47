"""Everything that talks to Kafka brokers, and the translation of the client's errors."""

from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.admin.source_partitions import (
    forced_positions,
    positions,
    source_lag,
    source_partitions,
    source_topics,
)
from penstock.kafka.admin.topic_setup import prepare_topics
from penstock.kafka.client.clients import (
    CONSUMER_DEFAULTS,
    PRODUCER_DEFAULTS,
    buffer_settings,
    close_member,
    make_alone_producer,
    make_consumer,
    make_producer,
    member_settings,
    reader_settings,
)
from penstock.kafka.client.message_records import MESSAGES, to_record

__all__ = [
    "CONSUMER_DEFAULTS",
    "MESSAGES",
    "PRODUCER_DEFAULTS",
    "Cluster",
    "buffer_settings",
    "close_member",
    "forced_positions",
    "make_alone_producer",
    "make_consumer",
    "make_producer",
    "member_settings",
    "positions",
    "prepare_topics",
    "reader_settings",
    "source_lag",
    "source_partitions",
    "source_topics",
    "to_record",
]
