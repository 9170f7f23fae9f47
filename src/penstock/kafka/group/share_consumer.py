"""Consumers of share groups (KIP-932), and the settings of share groups on the broker."""

from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from penstock.app import Handler
from penstock.errors import SetupError
from penstock.kafka.admin.answers import ANSWER_SECONDS, answer
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.client.clients import LOG
from penstock.kafka.client.settings_by_client import consumer_settings
from penstock.kafka.errors import translate

_START = "share.auto.offset.reset"
_LIMIT = "group.share.delivery.count.limit"
_DEFAULT_LIMIT = 5  # Kafka's own


def make_share_consumer(brokers: str, handler: Handler) -> Any:
    """Make a share consumer.

    A poll returns only as many records as run at once, so no record's lock expires in a queue.
    """
    try:
        from confluent_kafka import ShareConsumer  # noqa: PLC0415 - older clients have none
    except ImportError as error:
        raise SetupError(
            'mode="share" needs confluent-kafka 2.16 or newer, which supports share groups.',
            hint="Install it: pip install 'confluent-kafka>=2.16'.",
        ) from error
    config = {
        **consumer_settings(handler.named_settings),
        "bootstrap.servers": brokers,
        "group.id": handler.group,
        "share.acknowledgement.mode": "explicit",
        "max.poll.records": min(handler.largest_concurrency, handler.max_in_flight),
    }
    try:
        return ShareConsumer(config, logger=LOG)
    except KafkaException as error:
        raise translate(error, doing="creating a consumer", brokers=brokers, settings=handler.settings) from error


def set_share_start(brokers: str, handler: Handler) -> None:
    """Set where the share group starts. This is a setting of the group; Kafka's default is the end of the log."""
    resource = ConfigResource(ResourceType.GROUP, handler.group)
    resource.add_incremental_config(
        ConfigEntry(_START, str(handler.start), incremental_operation=AlterConfigOpType.SET)
    )
    admin = Cluster(brokers, handler.settings).admin
    try:
        for future in admin.incremental_alter_configs([resource], request_timeout=ANSWER_SECONDS).values():
            answer(future)
    except KafkaException as error:
        doing = f"setting where share group {handler.group} starts"
        raise translate(error, doing=doing, brokers=brokers, settings=handler.settings) from error


def delivery_limit(brokers: str, handler: Handler) -> int:
    """Return after how many deliveries the brokers drop a record."""
    admin = Cluster(brokers, handler.settings).admin
    try:
        known = admin.list_topics(timeout=ANSWER_SECONDS).brokers
        asked = [ConfigResource(ResourceType.BROKER, str(broker)) for broker in known]
        answers = admin.describe_configs(asked, request_timeout=ANSWER_SECONDS).values()
        return min(int(answer(future)[_LIMIT].value) for future in answers)
    except (KafkaException, KeyError, ValueError):  # ACLs may forbid to read broker settings
        return _DEFAULT_LIMIT
