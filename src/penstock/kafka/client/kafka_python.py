"""What is used of kafka-python, in one place: it comes with an extra, and few of these parts are its public ones."""

import logging
import warnings
from types import new_class
from typing import Any

from penstock.errors import ConfigError
from penstock.kafka import protocol

try:
    with warnings.catch_warnings():
        # Of Python's old way to read a package's files, as it loads its protocol.
        warnings.simplefilter("ignore", DeprecationWarning)
        import kafka.errors
        from kafka.admin import KafkaAdminClient
        from kafka.net.manager import KafkaConnectionManager
        from kafka.net.selector import NetworkSelector
        from kafka.protocol.admin import ListGroupsRequest
        from kafka.protocol.api_message import ApiMessage
        from kafka.protocol.consumer import (
            HeartbeatRequest,
            JoinGroupRequest,
            LeaveGroupRequest,
            OffsetCommitRequest,
            SyncGroupRequest,
        )
        from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
        from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest, MetadataRequest

        def _described(name: str) -> Any:
            """What it does not have, by a description of ours."""
            return new_class(name, (ApiMessage,), {"load_json": protocol.__name__})

        ShareGroupDescribeRequest = _described("ShareGroupDescribeRequest")
        DescribeShareGroupOffsetsRequest = _described("DescribeShareGroupOffsetsRequest")
        AlterShareGroupOffsetsRequest = _described("AlterShareGroupOffsetsRequest")
        DeleteShareGroupOffsetsRequest = _described("DeleteShareGroupOffsetsRequest")
        # Answers are found by the number that they have in common with their requests, as long as somebody holds them.
        ShareGroupDescribeResponse = _described("ShareGroupDescribeResponse")
        DescribeShareGroupOffsetsResponse = _described("DescribeShareGroupOffsetsResponse")
        AlterShareGroupOffsetsResponse = _described("AlterShareGroupOffsetsResponse")
        DeleteShareGroupOffsetsResponse = _described("DeleteShareGroupOffsetsResponse")
except ImportError as missing:
    raise ConfigError(
        "Share groups, and assignors that the Kafka client does not have, need kafka-python, which is not installed.",
        hint="Install it: pip install 'penstock[assignors]'.",
    ) from missing

kafka_python_errors = kafka.errors
# What it says of lost connections we say in our own words; whoever configures logging still gets its own.
logging.getLogger("kafka").addHandler(logging.NullHandler())

__all__ = [
    "AlterShareGroupOffsetsRequest",
    "AlterShareGroupOffsetsResponse",
    "ConsumerProtocolAssignment",
    "ConsumerProtocolSubscription",
    "CoordinatorType",
    "DeleteShareGroupOffsetsRequest",
    "DeleteShareGroupOffsetsResponse",
    "DescribeShareGroupOffsetsRequest",
    "DescribeShareGroupOffsetsResponse",
    "FindCoordinatorRequest",
    "HeartbeatRequest",
    "JoinGroupRequest",
    "KafkaAdminClient",
    "KafkaConnectionManager",
    "LeaveGroupRequest",
    "ListGroupsRequest",
    "MetadataRequest",
    "NetworkSelector",
    "OffsetCommitRequest",
    "ShareGroupDescribeRequest",
    "ShareGroupDescribeResponse",
    "SyncGroupRequest",
    "kafka_python_errors",
]
