"""The members of one handler in one process, and the checks that the topic watcher runs for them."""

import time
from collections.abc import Callable

from penstock.app import Handler
from penstock.core.records.record import TopicPartition
from penstock.core.reports.events import Event, Joining
from penstock.core.reports.joining import MemberAssignment, why_joining_takes, why_partitions_are_missing
from penstock.engine.fetch.start_positions import KnownPartitions
from penstock.engine.member import HandlerMember, SharedState, session_seconds
from penstock.engine.observe.event_merger import EventMerger
from penstock.engine.share import ShareMember
from penstock.kafka import Cluster, source_lag, source_partitions
from penstock.kafka.admin.consumer_groups import GroupDescription
from penstock.kafka.admin.describe_group import describe_group

# A member that waits for its partitions reports why: first after 3 s, then every 10 s.
_FIRST_NOTICE_SECONDS = 3.0
_NEXT_NOTICE_SECONDS = 10.0


class HandlerMembers:
    """Makes the members of a handler and starts them. The topic watcher's thread calls ``report_*`` and ``check_*``."""

    def __init__(
        self,
        handler: Handler,
        cluster: Cluster,
        emit: Callable[[Event], None],
        *,
        per_record: bool,
        until_caught_up: bool,
    ) -> None:
        self._handler = handler
        self._cluster = cluster
        self._emit = emit
        self._started = self._next_notice = time.monotonic()
        self._waits_to_join = not (handler.is_shared or handler.partitions)
        self._sources = source_partitions(handler, cluster)
        self._tps = [*self._sources, *cluster.topic_partitions(handler.delayed)]
        replay = handler.replay_range
        self._ends = replay.ends if replay else cluster.end_offsets(self._tps) if until_caught_up else None
        self._shared = SharedState(known_partitions=KnownPartitions(self._sources))
        self._topic_ids = cluster.topic_ids(self._topics)
        self._epochs: dict[TopicPartition, tuple[HandlerMember | ShareMember, int]] = {}
        merger = EventMerger(emit, handler.members)
        self.members: list[HandlerMember | ShareMember] = [
            ShareMember(handler, brokers=cluster.brokers, emit=merger.of(number), per_record=per_record, number=number)
            if handler.is_shared
            else HandlerMember(
                handler,
                brokers=cluster.brokers,
                emit=merger.of(number),
                per_record=per_record,
                until=self._ends,
                shared=self._shared,
                number=number,
            )
            for number in range(handler.members)
        ]

    @property
    def _topics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(topic for topic, _ in self._sources))

    def start(self) -> None:
        lag = self._lag()
        self._started = time.monotonic()
        self._next_notice = self._started + _FIRST_NOTICE_SECONDS
        for member in self.members:
            member.start(lag, self._topics)

    def _lag(self) -> int:
        if self._handler.replay_range is not None:
            return self._handler.replay_range.left
        return 0 if self._handler.is_shared else source_lag(self._handler, self._cluster, self._tps)

    def report_slow_join(self) -> None:
        """Report why a member waits, for example because the broker waits for another member that was killed."""
        now = time.monotonic()
        if not self._waits_to_join or now < self._next_notice:
            return
        is_classic = self._handler.protocol == "classic"
        if is_classic and all(isinstance(member, ShareMember) or member.has_joined for member in self.members):
            self._waits_to_join = False
            return
        self._next_notice = now + _NEXT_NOTICE_SECONDS
        group, waited = self._handler.group, now - self._started
        found = describe_group(self._cluster, group)
        if found is None:
            return
        if is_classic:
            others = len(found.group.members) - len(self.members)
            session = session_seconds(self._handler)
            reason = why_joining_takes(group, found.group.state, others=others, waited=waited, session=session)
        else:
            reason = self._why_partitions_are_missing(found.group, waited, found.session_seconds)
        if reason is not None:
            self._emit(Joining(group=group, handler=self._handler.name, seconds=round(waited, 3), reason=reason))

    def _why_partitions_are_missing(self, found: GroupDescription, waited: float, session: float | None) -> str | None:
        """With the consumer protocol: the wait ends when the group has all our members and is Stable."""
        members = {each.id: MemberAssignment(each.partitions, each.target) for each in found.members}
        own = {member.id_in_group for member in self.members if isinstance(member, HandlerMember)}
        known = {id_ for id_ in own if id_ is not None}
        if found.state == "Stable" and len(known) == len(self.members) and known <= members.keys():
            self._waits_to_join = False
            return None
        return why_partitions_are_missing(found.name, members, own=known, waited=waited, session=session)

    def check_caught_up(self) -> None:
        """Mark partitions that moved to other processes as finished when those have committed them."""
        moved = self._shared.catch_up.unfinished
        if self._ends is not None and moved:
            committed = self._cluster.committed(self._handler.group, moved)
            ends = self._ends
            done = [tp for tp, offset in committed.items() if offset >= ends.get(tp, 0)]
            self._shared.catch_up.finished(done)

    def count_partitions(self) -> None:
        """Count the partitions again by which members divide their rate, because topics can get more."""
        if any(isinstance(member, HandlerMember) and member.has_shared_rate for member in self.members):
            self._shared.known_partitions.count = len(source_partitions(self._handler, self._cluster))

    def check_recreated_topics(self) -> None:
        """Restart the partitions of recreated topics.

        A recreated topic may grow past our position before the client refreshes its metadata. The client then sees no
        error and would skip the first records of the new log. Epochs that began since the last check are left alone:
        they began on the new log.
        """
        epochs = {tp: (member, owned.epoch) for member in self.members for tp, owned in member.survey().items()}
        before, ids = self._topic_ids, self._cluster.topic_ids({topic for topic, _ in epochs})
        recreated = {topic for topic, found in ids.items() if before.get(topic, found) != found}
        self._topic_ids = {**before, **ids}
        for tp, (member, number) in epochs.items():
            if tp[0] in recreated and self._epochs.get(tp) == (member, number):
                member.renew([tp])
        self._epochs = epochs
