"""The byte formats of the consumer protocol: subscriptions for the group leader, and assignments from it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from struct import Struct, error

from penstock.assign import Member
from penstock.core.progress.group_metadata import SELF_MANAGED_MARK
from penstock.core.records.record import TopicPartition
from penstock.kafka.client.kafka_python import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from penstock.kafka.group.coordinator import GroupMemberInfo

_SUBSCRIPTION_VERSION = 3  # the first with a rack
_ASSIGNMENT_VERSION = 0  # later versions have no other fields
_LENGTH = Struct(">H")


@dataclass(frozen=True, slots=True)
class PenstockData:
    """What a Penstock member adds to the assignor's user data. Other clients' members have none."""

    votes: tuple[str, ...]


def write_subscription(
    topics: Iterable[str],
    *,
    owned: Sequence[TopicPartition],
    generation: int,
    rack: str | None,
    user_data: bytes | None,
    penstock_data: PenstockData,
) -> bytes:
    kind = ConsumerProtocolSubscription
    written = kind(
        # Sorted, because the broker compares bytes to see whether a static member that rejoins has changed.
        topics=sorted(topics),
        user_data=(user_data or b"") + _tail(penstock_data),
        owned_partitions=[kind.TopicPartition(topic=topic, partitions=numbers) for topic, numbers in _by_topic(owned)],
        generation_id=generation,
        rack_id=rack,
        version=_SUBSCRIPTION_VERSION,
    )
    return bytes(written.encode())


def read_subscription(info: GroupMemberInfo) -> tuple[Member, PenstockData | None]:
    read = ConsumerProtocolSubscription.decode(info.metadata)
    user_data, penstock_data = _split(bytes(read.user_data) if read.user_data is not None else None)
    owned = tuple((each.topic, number) for each in read.owned_partitions or () for number in each.partitions)
    member = Member(
        id=info.id,
        topics=tuple(read.topics),
        static_id=info.static_id,
        rack=read.rack_id or None,
        owned=owned,
        generation=read.generation_id,
        user_data=user_data,
    )
    return member, penstock_data


def write_assignment(tps: Sequence[TopicPartition]) -> bytes:
    kind = ConsumerProtocolAssignment
    given = [kind.TopicPartition(topic=topic, partitions=numbers) for topic, numbers in _by_topic(tps)]
    return bytes(kind(assigned_partitions=given, user_data=None, version=_ASSIGNMENT_VERSION).encode())


def read_assignment(data: bytes) -> frozenset[TopicPartition]:
    """Decode an assignment. A member without partitions may get no bytes at all."""
    if not data:
        return frozenset()
    read = ConsumerProtocolAssignment.decode(data)
    return frozenset((each.topic, number) for each in read.assigned_partitions for number in each.partitions)


def _by_topic(tps: Iterable[TopicPartition]) -> Iterable[tuple[str, list[int]]]:
    for topic, same in groupby(sorted(tps), key=itemgetter(0)):
        yield topic, [number for _, number in same]


def _tail(penstock_data: PenstockData) -> bytes:
    text = json.dumps({"votes": penstock_data.votes}).encode()
    return text + _LENGTH.pack(len(text)) + SELF_MANAGED_MARK


def _split(data: bytes | None) -> tuple[bytes | None, PenstockData | None]:
    if data is None or not data.endswith(SELF_MANAGED_MARK):
        return data, None
    end = len(data) - len(SELF_MANAGED_MARK) - _LENGTH.size
    try:
        begin = end - _LENGTH.unpack_from(data, end)[0]
        fields: Mapping[str, Sequence[str]] = json.loads(data[begin:end])
        return data[:begin] or None, PenstockData(tuple(map(str, fields["votes"])))
    except (error, ValueError, KeyError, TypeError):
        return data, None
