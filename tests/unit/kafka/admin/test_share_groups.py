"""The brokers' responses about share groups, decoded from bytes."""

from typing import Any
from uuid import UUID

import pytest
from confluent_kafka import KafkaException

from penstock.kafka.admin.consumer_groups import CommittedOffset, DescribedMember
from penstock.kafka.admin.share_groups import _description, _starts
from penstock.kafka.client.kafka_python import DescribeShareGroupOffsetsResponse, ShareGroupDescribeResponse

TOPIC_ID = UUID(int=7)


class Node:
    host, port, node_id = "kafka-1", 9092, 1


def travelled(kind: Any, answer: Any, version: int) -> Any:
    return kind.decode(bytes(answer.encode(version=version)), version=version)


def test_a_description_is_read_as_the_brokers_write_it() -> None:
    described = ShareGroupDescribeResponse.DescribedGroup
    member = described.Member
    tps = member.Assignment.TopicPartitions(topic_id=TOPIC_ID, topic_name="orders", partitions=[2, 0])
    answer = ShareGroupDescribeResponse(
        throttle_time_ms=0,
        groups=[
            described(
                error_code=0,
                error_message=None,
                group_id="queue",
                group_state="Stable",
                group_epoch=3,
                assignment_epoch=2,
                assignor_name="simple",
                authorized_operations=0,
                members=[
                    member(
                        member_id="m",
                        rack_id="room-2",
                        member_epoch=3,
                        client_id="c",
                        client_host="/h",
                        subscribed_topic_names=["orders"],
                        assignment=member.Assignment(topic_partitions=[tps]),
                    )
                ],
            )
        ],
    )
    (group,) = travelled(ShareGroupDescribeResponse, answer, 1).groups
    found = _description(Node, group)
    assert (found.name, found.type, found.state, found.coordinator) == ("queue", "Share", "Stable", "kafka-1:9092 (1)")
    assert (found.epoch, found.assignment_epoch, found.is_shared, found.is_active) == (3, 2, True, True)
    owned = (("orders", 0), ("orders", 2))
    assert found.members == (DescribedMember("m", "c", "/h", None, owned, owned, rack="room-2"),)


def offsets(version: int, *, error: int = 0, lag: int = 5) -> Any:
    described = DescribeShareGroupOffsetsResponse.DescribedGroup
    part = described.DescribedTopic.DescribedPartition
    known = {"leader_epoch": 0, "error_message": None}
    parts = [
        part(partition_index=0, start_offset=10, lag=lag, error_code=error, **known),
        part(partition_index=1, start_offset=-1, lag=-1, error_code=0, **known),
    ]
    topic = described.DescribedTopic(topic_name="orders", topic_id=TOPIC_ID, partitions=parts)
    group = described(group_id="queue", topics=[topic], error_code=0, error_message=None)
    answer = DescribeShareGroupOffsetsResponse(throttle_time_ms=0, groups=[group])
    return travelled(DescribeShareGroupOffsetsResponse, answer, version).groups[0]


def test_a_share_group_has_a_start_after_its_first_read_and_a_lag_if_brokers_count_it() -> None:
    unread = {("orders", 1): None}
    assert _starts(offsets(1)) == {("orders", 0): CommittedOffset(10, lag=5)} | unread
    assert _starts(offsets(1, lag=-1)) == {("orders", 0): CommittedOffset(10, lag=None)} | unread
    assert _starts(offsets(0)) == {("orders", 0): CommittedOffset(10, lag=None)} | unread


def test_a_partition_that_fails_is_not_left_out() -> None:
    with pytest.raises(KafkaException):
        _starts(offsets(1, error=15))
