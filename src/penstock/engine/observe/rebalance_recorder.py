"""Records a member's rebalances for the Rebalanced event.

For a native member, the sources are the client's callbacks and statistics. A self-managed member records its
rebalances itself, and uses this recorder only to leave.
"""

import json
import re
import time
from collections.abc import Callable, Iterable
from typing import Any

from penstock.app import Handler
from penstock.core.records.record import TopicPartition
from penstock.core.reports.rebalance import (
    BROKE,
    JOINED,
    LEFT,
    TIMED_OUT,
    UNKNOWN,
    Coordinator,
    OngoingRebalance,
    Reason,
    Rebalance,
)
from penstock.kafka.client.librdkafka_internals import generation_in

# Regular expressions, because the JSON of the statistics may have megabytes and only three values are needed.
_REASON = re.compile(r'"rebalance_reason": ?("(?:[^"\\]|\\.)*")')
_COORDINATOR = re.compile(r'"name": ?"GroupCoordinator", ?"nodeid": ?-?\d+, ?"nodename": ?"([^"]+)"')
# The client has a separate connection to the coordinator, with node id -1. The real id is next to the same address.
_BROKER = r'"nodeid": ?(\d+), ?"nodename": ?"%s"'


class RebalanceRecorder:
    """Notes the times of each rebalance.

    Its reason is in the client's next statistics, so the report waits for them.
    """

    def __init__(self, handler: Handler, consumer: Any, tell: Callable[[Rebalance], None]) -> None:
        self._handler = handler
        self._consumer = consumer
        self._tell = tell
        self._reason: Reason = JOINED
        self._round: OngoingRebalance | None = None
        self._waiting: list[tuple[OngoingRebalance, float]] = []
        self._last_words = ""
        self._new_words = ""
        self._coordinator: Coordinator | None = None
        self._member_id: str | None = None
        if handler.is_self_managed:
            self._votes = tuple(each.name for each in handler.assignors)
        else:
            default = "cooperative-sticky" if handler.protocol == "classic" else None
            self._votes = tuple(name for name in (handler.assignor or default,) if isinstance(name, str))

    def begin(self) -> None:
        """Note that the client has called ``on_assign`` or ``on_revoke``."""
        if self._round is None:
            self._round = self._new_round()
        else:
            self._round.phase("rejoined", now=time.monotonic())

    def _new_round(self) -> OngoingRebalance:
        reason, self._reason = self._reason, UNKNOWN
        membership = "self-managed" if self._handler.is_self_managed else "native"
        return OngoingRebalance(membership, reason, now=time.monotonic(), moment=time.time())

    def gave_up(self, tps: Iterable[TopicPartition]) -> None:
        if self._round is not None:
            self._round.gave_up(tps, now=time.monotonic())
            self._round.phase("given up", now=time.monotonic())
        if self._handler.protocol == "consumer":  # there each revoke is a rebalance without an assign
            self._finish()

    def took(self, tps: Iterable[TopicPartition]) -> None:
        if self._round is not None:
            self._member_id = self._consumer.memberid() or None
            self._round.known["generation"] = self._generation()
            self._round.took(tps, now=time.monotonic())
            self._round.phase("taken over", now=time.monotonic())
        self._finish()

    def lost(self, tps: Iterable[TopicPartition], reason: Reason = TIMED_OUT) -> None:
        self._reason = reason
        self._round = self._new_round()
        self._round.lost(tps, now=time.monotonic())

    def broke_off(self, tps: Iterable[TopicPartition]) -> None:
        """Note that the consumer is broken. The next consumer is a new member."""
        self.lost(tps, BROKE)
        self.left()

    def leaving(self, member_id: str | None = None) -> None:
        self._reason = LEFT
        self._member_id = member_id or self._member_id

    def left(self) -> None:
        """Report the last rebalance, and those that still wait for statistics: none will come."""
        self._finish()
        self._tell_waiting(None)

    def on_statistics(self, text: str) -> None:
        found = _COORDINATOR.search(text)
        if found is not None:
            node = re.search(_BROKER % re.escape(found[1]), text)
            # The statistics do not have the partition count of __consumer_offsets.
            self._coordinator = Coordinator.of(
                self._handler.group, node=int(node[1]) if node else None, address=found[1], offsets_partitions=None
            )
        reason = _REASON.search(text)
        words = json.loads(reason[1]) if reason else ""
        if words != self._last_words:
            # The client repeats its last reason in all later statistics, so only a new reason is about this rebalance.
            self._last_words = self._new_words = words
        if self._waiting:
            words, self._new_words = self._new_words, ""
            self._tell_waiting(words)

    def _generation(self) -> int | None:
        """Return the generation with the classic protocol, where all members have the same one."""
        if self._handler.protocol != "classic":
            return None
        return generation_in(self._consumer.consumer_group_metadata())

    def _finish(self) -> None:
        story, self._round = self._round, None
        if story is not None:
            story.known.update(member_id=self._member_id, votes=self._votes)
            # With a single vote, the group must have chosen that assignor.
            story.known["strategy"] = self._votes[0] if len(self._votes) == 1 else None
            self._waiting.append((story, time.monotonic()))

    def _tell_waiting(self, reason: str | None) -> None:
        waiting, self._waiting = self._waiting, []
        for story, now in waiting:
            if story.reason == UNKNOWN and reason:
                story.reason = f"the client says: {reason}"
            story.known["coordinator"] = self._coordinator
            self._tell(story.finished(now=now))
