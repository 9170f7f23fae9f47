"""When a self-managed member sends heartbeats, and what the answers mean."""

import threading
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException

from penstock.kafka.error_codes import Code
from penstock.kafka.group.coordinator import CoordinatorConnection, Identity
from penstock.kafka.group.heartbeats import Heartbeats, RejoinError, SilenceError

MEMBER = Identity("g", "m-1", 7, None)
HOUR = 3600.0


class Coordinator:
    """Answers every heartbeat with ``code``, 0 for success."""

    def __init__(self, code: int = 0) -> None:
        self.code = code
        self.asked: list[Identity] = []

    def heartbeat(self, identity: Identity, **_: Any) -> None:
        self.asked.append(identity)
        if self.code:
            raise KafkaException(KafkaError(self.code))


def make_heartbeats(coordinator: Coordinator, *, session: float = HOUR) -> Heartbeats:
    leaving = threading.Event()
    leaving.set()  # so that no test waits for a retry
    connection = cast("CoordinatorConnection", coordinator)
    return Heartbeats(connection, interval=HOUR, session=session, leaving=leaving)


def test_one_heartbeat_is_sent_in_each_interval() -> None:
    coordinator = Coordinator()
    heartbeats = make_heartbeats(coordinator)
    for _ in range(3):
        heartbeats.send_if_due(MEMBER)
    assert coordinator.asked == [MEMBER]
    heartbeats.send_at_once()
    heartbeats.send_if_due(MEMBER)
    assert coordinator.asked == [MEMBER, MEMBER]


def test_another_answer_of_the_coordinator_counts_as_a_heartbeat() -> None:
    coordinator = Coordinator()
    heartbeats = make_heartbeats(coordinator)
    heartbeats.answered()
    heartbeats.send_if_due(MEMBER)
    assert coordinator.asked == []


def test_a_rebalance_means_rejoin() -> None:
    heartbeats = make_heartbeats(Coordinator(Code.REBALANCE_IN_PROGRESS), session=-1.0)
    with pytest.raises(RejoinError):
        heartbeats.send_if_due(MEMBER)


@pytest.mark.parametrize("code", [Code.UNKNOWN_MEMBER_ID, Code.ILLEGAL_GENERATION, Code.GROUP_AUTHORIZATION_FAILED])
def test_a_refused_member_and_a_final_error_are_raised(code: Code) -> None:
    with pytest.raises(KafkaException) as raised:
        make_heartbeats(Coordinator(code)).send_if_due(MEMBER)
    assert raised.value.args[0].code() == code


def test_other_errors_are_retried_soon() -> None:
    heartbeats = make_heartbeats(coordinator := Coordinator(Code.NOT_COORDINATOR))
    before = heartbeats.next
    heartbeats.send_if_due(MEMBER)
    assert coordinator.asked == [MEMBER]
    assert heartbeats.next < before + HOUR


def test_a_coordinator_that_is_silent_for_a_session_means_that_the_member_is_removed() -> None:
    heartbeats = make_heartbeats(Coordinator(Code.LOCAL_TRANSPORT), session=-1.0)
    with pytest.raises(SilenceError):
        heartbeats.send_if_due(MEMBER)
    assert heartbeats.is_silent
