"""Group membership by Penstock, for assignors that the Kafka client does not have. The client only fetches."""

import time
from collections.abc import Sequence
from math import inf
from queue import Empty
from typing import Any

from confluent_kafka import KafkaException, TopicPartition

from penstock.engine.membership.native_membership import NativeMembership
from penstock.kafka.client.librdkafka_internals import member_metadata
from penstock.kafka.group.membership_events import (
    MemberFailed,
    OffsetsCommitted,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
)
from penstock.kafka.group.self_managed_member import SelfManagedMember


class SelfManagedMembership(NativeMembership):
    """The member's thread decides what to assign and revoke; the fetcher thread does it between two polls."""

    def __init__(self, *arguments: Any, number: int, brokers: str, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._member = SelfManagedMember(self._handler, number=number, brokers=brokers, on_rebalance=self._on_rebalance)
        self._losses = 0  # how many PartitionsLost this thread has handled
        self._reassign_after = inf
        self.committer = self

    def join(self) -> None:
        self._member.start()

    def attend(self) -> None:
        self._member.tick()
        if time.monotonic() >= self._reassign_after:
            self._reassign_after = inf
            self._member.reassign()
        while True:
            try:
                event = self._member.events.get_nowait()
            except Empty:
                return
            match event:
                case PartitionsAssigned(offered, done):
                    tps = [tp for tp in offered if tp not in self.positions.owned]
                    self._load_metadata(tps)
                    self._assign(tps)
                    done()
                case PartitionsRevoked(tps, done):
                    self._revoke(tps)
                    done()
                case PartitionsLost(tps, losses):
                    self._losses = losses
                    self._lose(tps)
                case OffsetsCommitted(commits, refused):
                    self._commit_sender.answered(commits, refused)
                case MemberFailed(error):
                    raise error

    def start_over(self, *, seconds: float) -> bool:
        """Do it without leaving the group, so that the other members do not rebalance."""
        self._lose([*self.positions.owned])
        self._reassign_after = time.monotonic() + seconds
        return True

    def leave(self) -> None:
        self._member.stop_rebalancing()
        owned = [*self.positions.owned]
        self._recorder.leaving(self._member.id)
        self._recorder.begin()
        self._revoke(owned)
        self._recorder.gave_up(owned)
        self._recorder.left()
        self._member.leave()
        self._deliver_commit_answers()
        self._consumer.close()

    def abandon(self) -> None:
        # In this order: no handler may start a record of these partitions once the group can assign them to others.
        super().abandon()
        self._member.leave()

    def _deliver_commit_answers(self) -> None:
        """Pass on the answers to the last commits. No other event matters after leaving."""
        while not self._member.events.empty():
            event = self._member.events.get_nowait()
            if isinstance(event, OffsetsCommitted):
                self._commit_sender.answered(event.commits, event.refused)

    def consumer_group_metadata(self) -> bytes | None:
        """Return the group metadata of the self-managed member, in the client's format, for its transactions.

        The client's own metadata has generation -1, and brokers do not fence commits with that. None after a loss that
        this thread has not handled yet: then the transaction must not be committed.
        """
        own = self._consumer.consumer_group_metadata()
        try:
            identity = self._member.identity_after(self._losses)
            return member_metadata(
                own, identity.group, identity.member_id, identity.generation, static_id=identity.static_id
            )
        except KafkaException:
            return None

    def commit(self, *, offsets: Sequence[TopicPartition], asynchronous: bool) -> Sequence[TopicPartition]:
        """Commit as the self-managed member, with the same parameters as ``Consumer.commit``."""
        commits = {(each.topic, each.partition): (each.offset, each.metadata or "") for each in offsets}
        if asynchronous:
            self._member.commit_later(commits, losses=self._losses)
        else:
            self._member.commit(commits, losses=self._losses)
        return offsets
