"""All imports from kafka-python. It is an optional dependency, and most of these parts are private.

Importing this module raises ConfigError if kafka-python is missing, or is a version that Penstock is not tested with.
"""

import logging
import re
import warnings
from importlib.metadata import PackageNotFoundError, version
from types import new_class
from typing import Any

from penstock.errors import ConfigError
from penstock.kafka import protocol

TESTED_VERSION = "3.0.12"
# Private parts may change in any version, so pyproject.toml has the same limits.
_MIN_VERSION, _BELOW_VERSION = (3, 0, 12), (3, 1)
_NEEDED_FOR = "Share groups, and assignors that the Kafka client does not have, need kafka-python"
_INSTALL = "Install kafka-python: pip install 'penstock[assignors]'."


def _installed() -> str | None:
    try:
        return version("kafka-python")
    except PackageNotFoundError:
        return None


def _unusable(installed: str | None) -> ConfigError:
    if installed is None:
        return ConfigError(f"{_NEEDED_FOR}, which is not installed.", hint=_INSTALL)
    return ConfigError(
        f"{_NEEDED_FOR}. kafka-python {installed} is installed; Penstock is tested with {TESTED_VERSION}.",
        hint=f"Run pip install kafka-python=={TESTED_VERSION}.",
    )


def check_version(installed: str | None) -> None:
    """Raise ConfigError for a version of kafka-python that Penstock is not tested with."""
    numbers = tuple(map(int, re.findall(r"\d+", installed or "")[:3]))
    if not _MIN_VERSION <= numbers < _BELOW_VERSION:
        raise _unusable(installed)


check_version(_installed())
try:
    with warnings.catch_warnings():
        # kafka-python loads its protocol files with a deprecated function of importlib.
        warnings.simplefilter("ignore", DeprecationWarning)
        import kafka.errors
        from kafka.net.manager import KafkaConnectionManager
        from kafka.net.selector import NetworkSelector
        from kafka.protocol.admin import DescribeLogDirsRequest, ListGroupsRequest
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
            """Make a request that kafka-python does not have, from a JSON description in kafka/protocol."""
            return new_class(name, (ApiMessage,), {"load_json": protocol.__name__})

        ShareGroupDescribeRequest = _described("ShareGroupDescribeRequest")
        DescribeShareGroupOffsetsRequest = _described("DescribeShareGroupOffsetsRequest")
        AlterShareGroupOffsetsRequest = _described("AlterShareGroupOffsetsRequest")
        DeleteShareGroupOffsetsRequest = _described("DeleteShareGroupOffsetsRequest")
        # kafka-python finds the class of an answer by its API key, as long as the class is referenced.
        ShareGroupDescribeResponse = _described("ShareGroupDescribeResponse")
        DescribeShareGroupOffsetsResponse = _described("DescribeShareGroupOffsetsResponse")
        AlterShareGroupOffsetsResponse = _described("AlterShareGroupOffsetsResponse")
        DeleteShareGroupOffsetsResponse = _described("DeleteShareGroupOffsetsResponse")
except ImportError as missing:
    raise ConfigError(f"{_NEEDED_FOR}, which cannot be imported: {missing}.", hint=_INSTALL) from missing

kafka_python_errors = kafka.errors
# Penstock reports lost connections itself. The log of kafka-python is shown if the user configures logging.
logging.getLogger("kafka").addHandler(logging.NullHandler())

__all__ = [
    "AlterShareGroupOffsetsRequest",
    "AlterShareGroupOffsetsResponse",
    "ConsumerProtocolAssignment",
    "ConsumerProtocolSubscription",
    "CoordinatorType",
    "DeleteShareGroupOffsetsRequest",
    "DeleteShareGroupOffsetsResponse",
    "DescribeLogDirsRequest",
    "DescribeShareGroupOffsetsRequest",
    "DescribeShareGroupOffsetsResponse",
    "FindCoordinatorRequest",
    "HeartbeatRequest",
    "JoinGroupRequest",
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
