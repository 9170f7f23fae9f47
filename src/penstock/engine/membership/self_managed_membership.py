"""Being a member with an assignor that the Kafka client does not have: Penstock is the member, the client fetches."""

import time
from collections.abc import Sequence
from math import inf
from queue import Empty
from typing import Any

from confluent_kafka import KafkaException, TopicPartition

from penstock.engine.membership.native_membership import Membership
from penstock.kafka.client.transactions import metadata_of_member
from penstock.kafka.group.membership_events import (
    Committed,
    MemberFailed,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
)
from penstock.kafka.group.self_managed_member import SelfManagedMember


class SelfManagedMembership(Membership):
    """The member's thread says what is to happen; it is carried out here, between two polls."""

    def __init__(self, *arguments: Any, number: int, brokers: str, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._member = SelfManagedMember(self._handler, number=number, brokers=brokers, tell=self._tell)
        self._losses = 0
        self._anew_at = inf
        self.commits_as = self

    def join(self) -> None:
        self._member.start()

    def attend(self) -> None:
        self._member.tick()
        if time.monotonic() >= self._anew_at:
            self._anew_at = inf
            self._member.offer_anew()
        while True:
            try:
                notice = self._member.notices.get_nowait()
            except Empty:
                return
            match notice:
                case PartitionsAssigned(offered, done):
                    tps = [tp for tp in offered if tp not in self.positions.owned]
                    self._get_to_know(tps)
                    self._assign(tps)
                    done()
                case PartitionsRevoked(tps, done):
                    self._revoke(tps)
                    done()
                case PartitionsLost(tps, losses):
                    self._losses = losses
                    self._lose(tps)
                case Committed(commits, refused):
                    self._commit_sender.answered(commits, refused)
                case MemberFailed(error):
                    raise error

    def start_over(self, *, seconds: float) -> bool:
        """Without leaving the group, so that no other member is disturbed."""
        self._lose([*self.positions.owned])
        self._anew_at = time.monotonic() + seconds
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
        self._hear_answers()
        self._consumer.close()

    def break_off(self) -> None:
        # In this order: when the group hears of it, nothing of ours may start any more.
        super().break_off()
        self._member.leave()

    def _hear_answers(self) -> None:
        """To commits that were on their way; all else that was to be done is done."""
        while not self._member.notices.empty():
            notice = self._member.notices.get_nowait()
            if isinstance(notice, Committed):
                self._commit_sender.answered(notice.commits, notice.refused)

    def consumer_group_metadata(self) -> bytes | None:
        """As the client's own, for its transactions: it is no member itself, and the broker would let it do anything.

        None after a loss, of which the dispatcher is about to hear: then nothing is to be committed.
        """
        own = self._consumer.consumer_group_metadata()
        try:
            identity = self._member.as_of(self._losses)
            return metadata_of_member(
                own, identity.group, identity.member_id, identity.generation, static_id=identity.static_id
            )
        except KafkaException:
            return None

    def commit(self, *, offsets: Sequence[TopicPartition], asynchronous: bool) -> Sequence[TopicPartition]:
        """As the client's own, for the committer."""
        commits = {(each.topic, each.partition): (each.offset, each.metadata or "") for each in offsets}
        if asynchronous:
            self._member.commit_later(commits, losses=self._losses)
        else:
            self._member.commit(commits, losses=self._losses)
        return offsets
