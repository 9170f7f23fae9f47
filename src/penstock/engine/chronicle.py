"""What the engine itself can tell of a member's rebalances.

Where the Kafka client is the member, that is all: its callbacks, and its statistics. An open member tells the rest.
"""

import json
import re
import time
from collections.abc import Callable, Iterable
from typing import Any

from penstock.app import Handler
from penstock.core.rebalance import BROKE, JOINED, LEFT, TIMED_OUT, UNKNOWN, Coordinator, Reason, Rebalance, Round
from penstock.core.record import TopicPartition as Place

# Of statistics that may be megabytes long, two places are of interest.
_REASON = re.compile(r'"rebalance_reason": ?("(?:[^"\\]|\\.)*")')
_COORDINATOR = re.compile(r'"name": ?"GroupCoordinator", ?"nodeid": ?(-?\d+), ?"nodename": ?"([^"]*)"')


class Chronicle:
    """Notes the moments of each round. Why it happened is in the client's next statistics, for which a round waits."""

    def __init__(self, handler: Handler, consumer: Any, tell: Callable[[Rebalance], None]) -> None:
        self._handler = handler
        self._consumer = consumer
        self._tell = tell
        self._reason: Reason = JOINED
        self._round: Round | None = None
        self._waiting: list[tuple[Round, float]] = []
        self._coordinator: Coordinator | None = None
        self._member_id: str | None = None
        if handler.is_open:
            self._votes = tuple(each.name for each in handler.assignors)
        else:
            default = "cooperative-sticky" if handler.protocol == "classic" else None
            self._votes = tuple(name for name in (handler.assignor or default,) if isinstance(name, str))

    def begin(self) -> None:
        """The client has called back."""
        if self._round is None:
            self._round = self._new_round()
        else:
            self._round.phase("rejoined", now=time.monotonic())

    def _new_round(self) -> Round:
        reason, self._reason = self._reason, UNKNOWN
        membership = "open" if self._handler.is_open else "native"
        return Round(membership, reason, now=time.monotonic(), moment=time.time())

    def gave_up(self, places: Iterable[Place]) -> None:
        if self._round is not None:
            self._round.gave_up(places, now=time.monotonic())
            self._round.phase("given up", now=time.monotonic())
        if self._handler.protocol == "consumer":  # there each step is by itself
            self._finish()

    def took(self, places: Iterable[Place]) -> None:
        if self._round is not None:
            self._member_id = self._consumer.memberid() or None
            self._round.took(places, now=time.monotonic())
            self._round.phase("taken over", now=time.monotonic())
        self._finish()

    def lost(self, places: Iterable[Place], reason: Reason = TIMED_OUT) -> None:
        self._reason = reason
        self._round = self._new_round()
        self._round.lost(places, now=time.monotonic())

    def broke_off(self, places: Iterable[Place]) -> None:
        """The consumer is of no more use; the next one is a new member."""
        self.lost(places, BROKE)
        self.left()

    def leaving(self, member_id: str | None = None) -> None:
        self._reason = LEFT
        self._member_id = member_id or self._member_id

    def left(self) -> None:
        """That was the last round; nothing more will be known of those before it either."""
        self._finish()
        self._tell_waiting(None)

    def on_statistics(self, text: str) -> None:
        found = _COORDINATOR.search(text)
        if found is not None and found[2]:
            # Of how many partitions the offsets topic has, the client knows nothing.
            self._coordinator = Coordinator.of(
                self._handler.group, node=int(found[1]), address=found[2], offsets_partitions=None
            )
        if self._waiting:
            reason = _REASON.search(text)
            self._tell_waiting(json.loads(reason[1]) if reason else None)

    def _finish(self) -> None:
        story, self._round = self._round, None
        if story is not None:
            story.known.update(member_id=self._member_id, votes=self._votes)
            # With a single vote there is nothing else that a group could have chosen.
            story.known["strategy"] = self._votes[0] if len(self._votes) == 1 else None
            self._waiting.append((story, time.monotonic()))

    def _tell_waiting(self, reason: str | None) -> None:
        waiting, self._waiting = self._waiting, []
        for story, now in waiting:
            if story.reason == UNKNOWN and reason:
                story.reason = f"the client says: {reason}"
            story.known["coordinator"] = self._coordinator
            self._tell(story.finished(now=now))
