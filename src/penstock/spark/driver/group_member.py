"""The driver's membership of the handler's group. It only owns partitions and commits: tasks do the fetching.

As a member, the driver shares partitions with other members, and the broker refuses what it commits after it has lost
them. All methods run on the thread of the handler's driver.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition

from penstock.app import Handler
from penstock.core.records.record import TopicPartition
from penstock.errors import PenstockError
from penstock.kafka import Cluster, close_member, make_consumer, member_settings
from penstock.kafka.errors import commit_refusal, is_final, translate

Commits = Mapping[TopicPartition, tuple[int, str]]
Changed = Callable[[list[TopicPartition]], None]
Answered = Callable[[Commits, str], None]

# The driver's thread only polls, so it never misses a heartbeat for long. After a crash, a new driver gets the
# partitions when the session of the old one is over.
_SESSION = {"session.timeout.ms": 10_000}


class DriverMember(Protocol):
    """``answered`` gets each commit with the reason why it failed, which is empty if the broker accepted it."""

    def join(self) -> None: ...
    def poll(self) -> list[PenstockError]:
        """Serve the client, which may call back. Returns errors that stop the handler."""

    def commit(self, commits: Commits) -> None: ...
    def commit_now(self, commits: Commits) -> None:
        """Commit, and wait for the answer."""

    def metadata(self) -> bytes | None:
        """The group metadata for transactions; None if this is not a member."""

    def leave(self) -> None: ...


class GroupMember:
    """A member of the group, by the Kafka client."""

    def __init__(
        self,
        handler: Handler,
        brokers: str,
        *,
        assigned: Changed,
        revoked: Changed,
        lost: Changed,
        answered: Answered,
        warn: Callable[[str], None],
    ) -> None:
        self._handler = handler
        self._brokers = brokers
        self._assigned, self._revoked, self._lost = assigned, revoked, lost
        self._answered = answered
        self._warn = warn
        self._owned: set[TopicPartition] = set()
        self._pending: list[Commits] = []
        self._warned: str | None = None
        self._cooperates = handler.cooperates or handler.is_self_managed
        settings = {**(_SESSION if handler.protocol == "classic" else {}), **handler.named_settings}
        self._consumer: Consumer = make_consumer(
            brokers,
            handler.group,
            settings=settings,
            member=_joinable(member_settings(handler, 0), handler),
            on_commit=self._on_commit,
        )

    def join(self) -> None:
        handler = self._handler
        # The client reads a topic that begins with ^ as a regular expression, and matches any part of a name.
        topics = list(handler.consumed_topics) if handler.pattern is None else [f"^({handler.pattern})$"]
        self._consumer.subscribe(topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost)

    def poll(self) -> list[PenstockError]:
        message = self._consumer.poll(0)
        found = None if message is None else message.error()
        return [] if found is None else self._judged(found)

    def _judged(self, found: KafkaError) -> list[PenstockError]:
        error = KafkaException(found)
        doing = f"consuming {self._handler.source} in group {self._handler.group}"
        translated = translate(error, doing=doing, brokers=self._brokers)
        translated.__cause__ = error
        if is_final(found):
            return [translated]
        if self._warned != found.name():
            self._warned = found.name()
            self._warn(str(translated))
        return []

    def commit(self, commits: Commits) -> None:
        self._pending.append(commits)
        try:
            self._consumer.commit(offsets=_offsets(commits), asynchronous=True)
        except KafkaException as error:
            self._pending.remove(commits)
            self._answered(commits, commit_refusal(error.args[0], is_member=True))

    def commit_now(self, commits: Commits) -> None:
        if not commits:
            return
        reason = ""
        try:
            found = self._consumer.commit(offsets=_offsets(commits), asynchronous=False)
            refused = next((each.error for each in found if each.error is not None), None)
            reason = "" if refused is None else commit_refusal(refused, is_member=True)
        except KafkaException as error:
            reason = commit_refusal(error.args[0], is_member=True)
        self._answered(commits, reason)

    def _on_commit(self, error: KafkaError | None, partitions: Sequence[KafkaTopicPartition]) -> None:
        where = {(each.topic, each.partition) for each in partitions}
        commits = next((each for each in self._pending if each.keys() == where), None)
        if commits is None:  # a synchronous commit
            return
        self._pending.remove(commits)
        refused = error or next((each.error for each in partitions if each.error is not None), None)
        self._answered(commits, "" if refused is None else commit_refusal(refused, is_member=True))

    def metadata(self) -> bytes | None:
        found: bytes | None = self._consumer.consumer_group_metadata()
        return found

    def leave(self) -> None:
        with suppress(KafkaException, RuntimeError):
            close_member(self._consumer, owns_partitions=bool(self._owned))

    # The client's callbacks, inside ``poll`` and ``close``.

    def _on_assign(self, _consumer: object, partitions: Sequence[KafkaTopicPartition]) -> None:
        tps = _tps(partitions)
        self._owned.update(tps)
        # At the end and paused: the client must not fetch what tasks read.
        at = [KafkaTopicPartition(*tp, OFFSET_END) for tp in tps]
        if self._cooperates:
            self._consumer.incremental_assign(at)
        else:
            self._consumer.assign(at)
        self._consumer.pause([KafkaTopicPartition(*tp) for tp in tps])
        self._assigned(tps)

    def _on_revoke(self, _consumer: object, partitions: Sequence[KafkaTopicPartition]) -> None:
        tps = [tp for tp in _tps(partitions) if tp in self._owned]
        self._owned.difference_update(tps)
        self._revoked(tps)

    def _on_lost(self, _consumer: object, partitions: Sequence[KafkaTopicPartition]) -> None:
        tps = [tp for tp in _tps(partitions) if tp in self._owned]
        self._owned.difference_update(tps)
        self._lost(tps)


class NamedPartitions:
    """For ``partitions=``: no membership. Commits are those of a client outside of the group."""

    def __init__(
        self, handler: Handler, cluster: Cluster, *, assigned: Changed, revoked: Changed, answered: Answered
    ) -> None:
        self._handler = handler
        self._cluster = cluster
        self._assigned, self._revoked = assigned, revoked
        self._answered = answered
        self._joined = False

    def join(self) -> None:
        self._joined = True

    def poll(self) -> list[PenstockError]:
        if self._joined:
            self._joined = False
            self._assigned(list(self._handler.partitions))
        return []

    def commit(self, commits: Commits) -> None:
        self.commit_now(commits)

    def commit_now(self, commits: Commits) -> None:
        if self._handler.is_dry_run:
            self._answered(commits, "")
            return
        reason = ""
        try:
            self._cluster.commit(
                self._handler.group,
                {tp: offset for tp, (offset, _) in commits.items()},
                {tp: text for tp, (_, text) in commits.items()},
            )
        except PenstockError as error:
            reason = error.problem
        self._answered(commits, reason)

    def metadata(self) -> bytes | None:
        return None

    def leave(self) -> None:
        self._revoked(list(self._handler.partitions))


def make_member(
    handler: Handler,
    cluster: Cluster,
    *,
    assigned: Changed,
    revoked: Changed,
    lost: Changed,
    answered: Answered,
    warn: Callable[[str], None],
) -> DriverMember:
    if handler.partitions:
        return NamedPartitions(handler, cluster, assigned=assigned, revoked=revoked, answered=answered)
    return GroupMember(
        handler, cluster.brokers, assigned=assigned, revoked=revoked, lost=lost, answered=answered, warn=warn
    )


def _joinable(settings: dict[str, Any], handler: Handler) -> dict[str, Any]:
    """Return the settings of a member by the Kafka client, for a handler with an assignor of Penstock's too."""
    if not handler.is_self_managed:
        return settings
    return {**settings, "group.protocol": "classic", "partition.assignment.strategy": "cooperative-sticky"}


def _offsets(commits: Commits) -> list[KafkaTopicPartition]:
    return [KafkaTopicPartition(*tp, offset, metadata=text) for tp, (offset, text) in commits.items()]


def _tps(partitions: Iterable[KafkaTopicPartition]) -> list[TopicPartition]:
    return [(each.topic, each.partition) for each in partitions]
