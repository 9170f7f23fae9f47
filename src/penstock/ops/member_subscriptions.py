"""Reads what the members of a group subscribe to, which the client's description of a group lacks."""

import warnings
from collections.abc import Collection, Iterator

from confluent_kafka import KafkaException, Message

from penstock.core.progress.commit_log import COMMIT_LOG, partition_of
from penstock.core.progress.group_metadata import (
    GroupKey,
    PatternKey,
    Subscription,
    read_epoch,
    read_key,
    read_matches,
    read_member,
    read_subscription,
)
from penstock.errors import PenstockError
from penstock.kafka.admin.answers import ANSWER_SECONDS
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.admin.consumer_groups import GroupDescription
from penstock.kafka.errors import translate
from penstock.kafka.read.read_records import read_to_end

# ``__consumer_offsets`` is compacted: it still has a member that joined long ago, perhaps far from the end.
_LOG_SECONDS = 10.0


def subscriptions(cluster: Cluster, group: GroupDescription) -> dict[str, Subscription]:
    """Return subscriptions by member id, without members whose subscription is unknown."""
    if not group.members:
        return {}
    found = _of_classic(cluster, group.name) if group.type == "Classic" else _from_log(cluster, group.name)
    return {member.id: found[member.id] for member in group.members if member.id in found}


def epochs(cluster: Cluster, groups: Collection[str]) -> dict[str, int | None]:
    """Return the epoch of each group from ``__consumer_offsets``; None if it cannot be read."""
    found: dict[str, int | None] = dict.fromkeys(groups)
    try:
        for message in _records(cluster, groups):
            key = read_key(bytes(message.key() or b""))
            if isinstance(key, GroupKey) and key.group in found:
                found[key.group] = read_epoch(bytes(message.value() or b""), classic=key.classic)
    except (PenstockError, TimeoutError):
        return dict.fromkeys(groups)
    return found


def _of_classic(cluster: Cluster, group: str) -> dict[str, Subscription]:
    """Return the subscriptions that members sent to their leader. During a rebalance there are none."""
    with warnings.catch_warnings():
        # The newer call does not return the metadata of members.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            answered = cluster.admin.list_groups(group, timeout=ANSWER_SECONDS)
        except KafkaException as error:
            doing = f"describing group {group}"
            raise translate(error, doing=doing, brokers=cluster.brokers, settings=cluster.settings) from error
    found = {}
    for member in (member for each in answered for member in each.members):
        known = read_subscription(bytes(member.metadata or b""))
        if known is not None:
            found[str(member.id)] = known
    return found


def _from_log(cluster: Cluster, group: str) -> dict[str, Subscription]:
    """Read subscriptions from ``__consumer_offsets``; none without permission, or if its end is not reached in time."""
    members: dict[str, Subscription] = {}
    matches: dict[str, tuple[str, ...]] = {}
    try:
        for message in _records(cluster, [group]):
            key = read_key(bytes(message.key() or b""))
            if key is None or key.group != group:
                continue
            value = bytes(message.value() or b"")
            if isinstance(key, GroupKey):
                continue
            if isinstance(key, PatternKey):
                matches[key.pattern] = read_matches(value) or ()
            elif (subscription := read_member(value)) is not None:
                members[key.member] = subscription
            else:
                members.pop(key.member, None)
    except (PenstockError, TimeoutError):
        return {}
    return {
        member: Subscription(tuple(dict.fromkeys((*each.topics, *matches.get(each.pattern or "", ())))), each.rack)
        for member, each in members.items()
    }


def _records(cluster: Cluster, groups: Collection[str]) -> Iterator[Message]:
    """Read the partitions of ``__consumer_offsets`` that hold these groups, up to their ends."""
    count = cluster.topics().get(COMMIT_LOG)
    if count is None:
        return
    starts = dict.fromkeys(((COMMIT_LOG, partition_of(group, count)) for group in groups), 0)
    # With read_committed, an open transaction would hide the records after it.
    member = {"isolation.level": "read_uncommitted"}
    yield from read_to_end(cluster, starts, doing=f"reading {COMMIT_LOG}", seconds=_LOG_SECONDS, member=member)
