"""Reports of rebalances of native members, as far as the Kafka client knows them."""

import sys
from typing import Any

import pytest

from penstock import App
from penstock.core.reports.rebalance import BROKE, JOINED, LEFT, TIMED_OUT, UNKNOWN, Rebalance
from penstock.engine.observe.rebalance_recorder import RebalanceRecorder

STATISTICS = (
    '{"name":"x","brokers":{"h:9/3":{"name":"h:9/3", "nodeid":3, "nodename":"h:9"},'
    '"h:9/4":{"name":"h:99/4", "nodeid":4, "nodename":"h:99"},'
    '"GroupCoordinator":{"name":"GroupCoordinator", "nodeid":-1, "nodename":"h:9"}},'
    '"cgrp":{"rebalance_reason":"%s"}}'
)


class Client:
    def memberid(self) -> str:
        return "m-1"

    def consumer_group_metadata(self) -> bytes:
        return b"CGMDv2:" + (7).to_bytes(4, sys.byteorder) + b"g\0m-1\0\1"


@pytest.fixture
def reported() -> list[Rebalance]:
    return []


def recorder(reported: list[Rebalance], **options: Any) -> RebalanceRecorder:
    app = App("g")

    @app.consume("t", **options)
    def handle(value: bytes) -> None: ...

    return RebalanceRecorder(app.handlers[0], Client(), reported.append)


def test_a_round_waits_for_the_statistics_that_say_why(reported: list[Rebalance]) -> None:
    notes = recorder(reported)
    notes.begin()
    notes.took([("t", 0), ("t", 1)])
    notes.begin()
    notes.gave_up([("t", 1)])
    assert not reported
    notes.begin()
    notes.took([])
    notes.on_statistics(STATISTICS % r"a \"topic\" changed")
    first, second = reported
    assert (first.reason, first.taken, first.member_id, first.strategy) == (
        JOINED, (("t", 0), ("t", 1)), "m-1", "cooperative-sticky",
    )  # fmt: skip
    assert second.reason == 'the client says: a "topic" changed'
    assert [phase.name for phase in second.phases] == ["given up", "rejoined", "taken over"]
    assert second.coordinator is not None
    assert (second.coordinator.node, second.coordinator.address, second.coordinator.partition) == (3, "h:9", None)
    assert (second.leader, second.members, second.generation) == (None, None, 7)


def test_a_reason_that_the_client_gave_before_is_not_the_reason_of_the_next_round(reported: list[Rebalance]) -> None:
    notes = recorder(reported)
    for words in ("one", "one", "two", ""):
        notes.begin()
        notes.took([])
        notes.on_statistics(STATISTICS % words)
    assert [each.reason for each in reported] == [JOINED, UNKNOWN, "the client says: two", UNKNOWN]


def test_a_coordinator_whose_id_the_client_does_not_report_has_none(reported: list[Rebalance]) -> None:
    notes = recorder(reported)
    notes.begin()
    notes.took([])
    notes.on_statistics('{"GroupCoordinator":{"name":"GroupCoordinator","nodeid":-1,"nodename":"h:9"}}')
    coordinator = reported[0].coordinator
    assert coordinator is not None
    assert (coordinator.node, coordinator.explained()) == (None, "h:9")


def test_without_a_reason_it_is_unknown(reported: list[Rebalance]) -> None:
    notes = recorder(reported, assignor="range")
    for _ in range(2):
        notes.begin()
        notes.took([])
    notes.on_statistics(STATISTICS % "")
    assert [(each.reason, each.strategy) for each in reported] == [(JOINED, "range"), (UNKNOWN, "range")]


def test_losing_breaking_and_leaving_are_reasons(reported: list[Rebalance]) -> None:
    notes = recorder(reported)
    notes.lost([("t", 0)])
    notes.begin()
    notes.took([("t", 0)])
    notes.leaving()
    notes.begin()
    notes.gave_up([("t", 0)])
    notes.left()
    recorder(reported).broke_off([("t", 2)])
    assert [(each.reason, each.lost, each.given_up) for each in reported] == [
        (TIMED_OUT, (("t", 0),), ()),
        (LEFT, (), (("t", 0),)),
        (BROKE, (("t", 2),), ()),
    ]
