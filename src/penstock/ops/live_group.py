"""Reads the current state of a group into the form that assignors take."""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException

from penstock.assign import Group, Member, Topic
from penstock.core.progress.group_metadata import Subscription
from penstock.core.records.record import TopicPartition
from penstock.core.text.plurals import counted
from penstock.errors import PenstockError
from penstock.kafka.admin.answers import ANSWER_SECONDS, answer
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.admin.consumer_groups import CommittedOffset, GroupDescription, Groups
from penstock.kafka.admin.log_bounds import Bounds, Found, Logs
from penstock.kafka.errors import translate
from penstock.ops.member_subscriptions import subscriptions

RATE_SECONDS = 60.0


@dataclass(frozen=True)
class LiveGroup:
    """``notes`` say what is not known, and what is assumed instead."""

    description: GroupDescription
    group: Group
    notes: tuple[str, ...] = ()
    all_open: bool = False
    """Whether every member is a self-managed Penstock member, so that an assignor of Penstock decides."""


def look(cluster: Cluster, name: str, *, topics: Iterable[str] = (), measure: float | None = None) -> LiveGroup:
    """Return the group with its members, their partitions, and lag and rate of every partition, also of ``topics``.

    The rate is that of the last minute by the records' timestamps. With ``measure`` it is measured for so many seconds.
    """
    description = _described(cluster, name)
    by_member = subscriptions(cluster, description)
    commits = _committed(cluster, name)
    notes = [*_state_notes(description)]
    assumed = _assumed(description, by_member, commits)
    notes += _unknown_notes(description, by_member, assumed)
    members = [_member(each, by_member.get(each.id), assumed) for each in description.members]
    subscribed = {topic for member in members for topic in member.topics} or set(assumed)
    metadata = _metadata(cluster)
    wanted = sorted(each for each in (subscribed | set(topics)) if each in metadata)
    notes += [
        f"Members subscribe to topic {each!r}, which does not exist." for each in sorted(subscribed - set(wanted))
    ]
    found = _Figures(cluster, {each: len(metadata[each].partitions) for each in wanted}, commits, measure)
    notes += found.notes
    racks = _racks(cluster)
    known = {each: found.topic(each, _racks_of(metadata[each], racks)) for each in wanted}
    all_open = bool(members) and all(
        member.id in by_member and by_member[member.id].is_self_managed for member in members
    )
    return LiveGroup(description, Group(tuple(members), known), tuple(notes), all_open)


def _described(cluster: Cluster, name: str) -> GroupDescription:
    described = Groups(cluster).describe([name])[name]
    if isinstance(described, PenstockError):
        raise described
    return described


def _committed(cluster: Cluster, name: str) -> Mapping[TopicPartition, CommittedOffset]:
    commits = Groups(cluster).committed([name])[name]
    if isinstance(commits, PenstockError):
        raise commits
    return commits


def _assumed(
    description: GroupDescription, by_member: Mapping[str, Subscription], commits: Collection[TopicPartition]
) -> tuple[str, ...]:
    """Return the topics assumed for members with an unknown subscription: all topics of the other members."""
    seen = {topic for each in by_member.values() for topic in each.topics}
    seen |= {topic for member in description.members for topic, _ in member.partitions}
    return tuple(sorted(seen or {topic for topic, _ in commits}))


def _member(each: Any, subscription: Subscription | None, assumed: tuple[str, ...]) -> Member:
    return Member(
        id=each.id,
        topics=assumed if subscription is None else subscription.topics,
        static_id=each.static_id,
        rack=None if subscription is None else subscription.rack,
        owned=each.partitions,
        client=each.client or None,
    )


def _state_notes(description: GroupDescription) -> Iterable[str]:
    if not description.members:
        yield "The group has no members now. Its topics are those that it has committed."
    elif description.state != "Stable":
        yield f"The group is not stable ({description.state}): the partitions of its members are about to change."
    elif any(set(member.target) != set(member.partitions) for member in description.members):
        yield "The broker is moving partitions now: the members do not have their target assignment yet."


def _unknown_notes(
    description: GroupDescription, by_member: Mapping[str, Subscription], assumed: Sequence[str]
) -> Iterable[str]:
    silent = sum(member.id not in by_member for member in description.members)
    if silent:
        everyone = "all members" if silent == len(description.members) else counted(silent, "member")
        yield (
            f"The subscription and the rack of {everyone} cannot be read from the group. This plan assumes the topics "
            f"{', '.join(assumed) or '(none)'}, and no rack."
        )


class _Figures:
    """Lag and rate of all partitions of these topics, from a few requests."""

    def __init__(
        self,
        cluster: Cluster,
        counts: Mapping[str, int],
        commits: Mapping[TopicPartition, CommittedOffset],
        measure: float | None,
    ) -> None:
        self._counts = counts
        self._commits = commits
        self.notes: list[str] = []
        tps = [(topic, number) for topic, count in counts.items() for number in range(count)]
        logs, began = Logs(cluster), time.time()
        self._bounds = {tp: each for tp, each in logs.bounds(tps).items() if isinstance(each, Bounds)}
        if measure is None:
            self._rates = self._of_the_past(logs, began - RATE_SECONDS)
        else:
            time.sleep(measure)
            self._rates = self._of_now(logs, began)
        self._note_gaps(tps)

    def topic(self, name: str, racks: tuple[frozenset[str], ...]) -> Topic:
        tps = [(name, number) for number in range(self._counts[name])]
        return Topic(
            len(tps),
            racks=racks,
            lag=tuple(self._lag(tp) for tp in tps),
            rate=tuple(self._rates.get(tp, 0.0) for tp in tps),
        )

    def _lag(self, tp: TopicPartition) -> int:
        """Return the lag. Without a commit it is the whole log: only the members know where they would start."""
        bounds, commit = self._bounds.get(tp), self._commits.get(tp)
        if bounds is None:
            return 0
        return max(0, bounds.end - max(bounds.start, 0 if commit is None else commit.offset))

    def _of_the_past(self, logs: Logs, since: float) -> dict[TopicPartition, float]:
        rates = {}
        for (tp, _), then in logs.at_times((tp, since) for tp in self._bounds).items():
            if isinstance(then, Found):
                end = self._bounds[tp].end
                rates[tp] = (end - (end if then.offset is None else then.offset)) / RATE_SECONDS
        return rates

    def _of_now(self, logs: Logs, began: float) -> dict[TopicPartition, float]:
        later = logs.bounds(self._bounds)
        seconds = time.time() - began
        return {
            tp: max(0, each.end - self._bounds[tp].end) / seconds
            for tp, each in later.items()
            if isinstance(each, Bounds)
        }

    def _note_gaps(self, tps: Sequence[TopicPartition]) -> None:
        dead = [tp for tp in tps if tp not in self._bounds]
        if dead:
            self.notes.append(f"{_named(dead)} cannot be read: the lag and the rate count as 0.")
        fresh = [tp for tp in self._bounds if tp not in self._commits and self._lag(tp)]
        if fresh:
            self.notes.append(f"Nothing is committed for {_named(fresh)}: the lag is the whole log.")


def _named(tps: Sequence[TopicPartition]) -> str:
    shown = ", ".join(f"{topic}-{number}" for topic, number in tps[:5])
    return shown if len(tps) <= 5 else f"{shown} and {len(tps) - 5} more"  # noqa: PLR2004 - a matter of taste


def _metadata(cluster: Cluster) -> Mapping[str, Any]:
    try:
        found = cluster.admin.list_topics(timeout=ANSWER_SECONDS).topics
    except KafkaException as error:
        raise translate(error, doing="listing topics", brokers=cluster.brokers, settings=cluster.settings) from error
    return {name: topic for name, topic in found.items() if topic.error is None}


def _racks(cluster: Cluster) -> dict[int, str]:
    """Return the racks of brokers, by id."""
    try:
        nodes = answer(cluster.admin.describe_cluster(request_timeout=ANSWER_SECONDS)).nodes
    except KafkaException as error:
        raise translate(
            error, doing="describing the cluster", brokers=cluster.brokers, settings=cluster.settings
        ) from error
    return {node.id: node.rack for node in nodes if node.rack}


def _racks_of(topic: Any, racks: Mapping[int, str]) -> tuple[frozenset[str], ...]:
    if not racks:
        return ()
    return tuple(
        frozenset(racks[replica] for replica in part.replicas if replica in racks)
        for _, part in sorted(topic.partitions.items())
    )
