"""The size of partitions on disk, with kafka-python: confluent-kafka does not have that request."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaException

from penstock.core.records.record import TopicPartition
from penstock.errors import ConfigError
from penstock.kafka.admin.answers import ANSWER_SECONDS
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.client.kafka_python_settings import kafka_python_config


def partition_bytes(cluster: Cluster, topics: Iterable[str]) -> dict[TopicPartition, int]:
    """Return the size of one replica of each partition; {} if kafka-python is missing or ACLs forbid the request."""
    topics = list(topics)
    if not topics:
        return {}
    try:
        # Imported here because it needs kafka-python, an optional dependency.
        from penstock.kafka.client.kafka_python_connection import KafkaPythonNetwork  # noqa: PLC0415

        network = KafkaPythonNetwork(kafka_python_config(cluster.brokers, cluster.settings))
    except ConfigError:
        return {}
    sizes: dict[TopicPartition, int] = {}
    with suppress(KafkaException):
        try:
            connection = network.connect()
            answers = connection.run(_describe_log_dirs, connection, topics)
        finally:
            network.close()
        for folder in (folder for answer in answers for folder in answer.results):
            for topic in folder.topics:
                for part in topic.partitions:
                    tp = (topic.name, part.partition_index)
                    sizes[tp] = max(sizes.get(tp, 0), part.partition_size)
    return sizes


async def _describe_log_dirs(connection: Any, topics: list[str]) -> list[Any]:
    """Ask every broker for the sizes of its replicas. The request names partitions, so ask for those first."""
    from penstock.kafka.client.kafka_python import DescribeLogDirsRequest, MetadataRequest  # noqa: PLC0415 - see above

    named = [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
    metadata = await connection.ask(MetadataRequest(topics=named, allow_auto_topic_creation=False), ANSWER_SECONDS)
    kind = DescribeLogDirsRequest.DescribableLogDirTopic
    wanted = [
        kind(topic=topic.name, partitions=[each.partition_index for each in topic.partitions])
        for topic in metadata.topics
    ]
    return list(await connection.ask_all_brokers(lambda: DescribeLogDirsRequest(topics=wanted), ANSWER_SECONDS))
