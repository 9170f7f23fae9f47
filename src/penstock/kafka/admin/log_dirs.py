"""The size of partitions on disk, with kafka-python: confluent-kafka does not have that request."""

from collections.abc import Iterable
from contextlib import suppress

from penstock.core.records.record import TopicPartition
from penstock.errors import ConfigError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.client.kafka_python_settings import kafka_python_config


def partition_bytes(cluster: Cluster, topics: Iterable[str]) -> dict[TopicPartition, int]:
    """Return the size of one replica of each partition; {} if kafka-python is missing or ACLs forbid the request."""
    topics = list(topics)
    if not topics:
        return {}
    try:
        from penstock.kafka.client.kafka_python import KafkaAdminClient, kafka_python_errors  # noqa: PLC0415 - it comes with an extra

        config = kafka_python_config(cluster.brokers, cluster.settings)
    except ConfigError:
        return {}
    sizes: dict[TopicPartition, int] = {}
    with suppress(kafka_python_errors.KafkaError):
        admin = KafkaAdminClient(**config)
        try:
            answers = admin.describe_log_dirs(topics)
        finally:
            admin.close()
        for folder in (folder for answer in answers for folder in answer["log_dirs"]):
            for topic in folder["topics"]:
                for part in topic["partitions"]:
                    tp = (topic["name"], part["partition_index"])
                    sizes[tp] = max(sizes.get(tp, 0), part["partition_size"])
    return sizes
