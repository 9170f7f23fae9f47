"""Heartbeats of a self-managed member: when to send one, and what the coordinator's answer means."""

import threading
import time

from confluent_kafka import KafkaException

from penstock.kafka.error_codes import NOT_A_MEMBER, Code
from penstock.kafka.errors import is_final
from penstock.kafka.group.coordinator import CoordinatorConnection, Identity

RETRY_SECONDS = 0.2
_MAX_ANSWER_SECONDS = 10.0


class RejoinError(Exception):
    """The coordinator wants all members to rejoin."""


class SilenceError(Exception):
    """The coordinator did not answer for a session, so this member counts as removed from the group."""


class Heartbeats:
    """The group thread sends them; the fetcher thread calls only ``send_at_once``.

    Args:
        connection: The connection that also joins and syncs.
        interval: heartbeat.interval.ms, in seconds.
        session: session.timeout.ms, in seconds.
        leaving: Set when the member is about to leave: then no retry is waited for.
    """

    def __init__(
        self, connection: CoordinatorConnection, *, interval: float, session: float, leaving: threading.Event
    ) -> None:
        self._connection = connection
        self._interval = interval
        self._session = session
        self._leaving = leaving
        self._last_answer = time.monotonic()
        self.next = self._last_answer
        """When the next heartbeat is due."""

    def send_at_once(self) -> None:
        self.next = 0.0

    def answered(self) -> None:
        """The coordinator has answered another request of this member: the next heartbeat is due after the interval."""
        self._last_answer = time.monotonic()
        self.next = self._last_answer + self._interval

    @property
    def is_silent(self) -> bool:
        """Whether the coordinator has not answered for a whole session."""
        return time.monotonic() - self._last_answer > self._session

    def send_if_due(self, identity: Identity) -> None:
        """Send a heartbeat if it is time; raise RejoinError, SilenceError, or an error that is not retried."""
        now = time.monotonic()
        if now < self.next:
            return
        self.next = now + self._interval
        try:
            self._connection.heartbeat(identity, seconds=min(self._session, _MAX_ANSWER_SECONDS))
        except KafkaException as error:
            code = error.args[0].code()
            if code == Code.REBALANCE_IN_PROGRESS:
                self._last_answer = now
                raise RejoinError from error
            if code in NOT_A_MEMBER or is_final(error.args[0]):
                raise
            self.next = now + min(self._interval, RETRY_SECONDS)
            if self.is_silent:
                raise SilenceError from error
            self._leaving.wait(RETRY_SECONDS)
        else:
            self._last_answer = now
