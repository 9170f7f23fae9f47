from pathlib import Path

import pytest

from penstock.devkit.broker_config import broker_settings, render_properties
from penstock.devkit.cluster_layout import Layout, Node
from penstock.devkit.server_startup import START_SECONDS

NODES = tuple(Node(number, 9091 + number, 20_000 + number) for number in (1, 2, 3, 4, 5))


def settings(brokers: int) -> dict[str, object]:
    return broker_settings(Layout("id", "/data", "512m", NODES[:brokers]), NODES[0])


@pytest.mark.parametrize(("brokers", "replicas", "in_sync"), [(1, 1, 1), (3, 3, 2), (5, 3, 2)])
def test_replication_follows_the_number_of_brokers(brokers: int, replicas: int, in_sync: int) -> None:
    made = settings(brokers)
    for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic"):
        assert made[f"{topic}.replication.factor"] == replicas
    assert made["default.replication.factor"] == replicas
    assert made["min.insync.replicas"] == in_sync
    assert made["transaction.state.log.min.isr"] == in_sync
    assert made["share.coordinator.state.topic.min.isr"] == in_sync


def test_all_nodes_are_voters_and_nothing_listens_beyond_this_machine() -> None:
    made = settings(3)
    assert made["controller.quorum.voters"] == "1@127.0.0.1:20001,2@127.0.0.1:20002,3@127.0.0.1:20003"
    assert made["listeners"] == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:20001"
    assert made["broker.rack"] == "rack-1"
    assert made["log.dirs"] == Path("/data/node-1")
    assert made["auto.create.topics.enable"] == "false"


def test_properties_are_ascii_with_javas_escapes() -> None:
    assert render_properties({"a": 1, "b": "C:\\dä/😀"}) == "a=1\nb=C:\\\\d\\u00e4/\\ud83d\\ude00\n"


@pytest.mark.parametrize(("was_killed", "session"), [(False, 18_000), (True, 3_000)])
def test_one_that_was_killed_is_back_soon_and_one_that_was_not_may_stand_still_for_a_while(
    *, was_killed: bool, session: int
) -> None:
    made = broker_settings(Layout("id", "/data", "512m", NODES[:1]), NODES[0], was_killed=was_killed)
    assert made["broker.session.timeout.ms"] == session


def test_a_broker_on_a_slow_machine_waits_for_a_controller_as_long_as_up_waits_for_the_broker() -> None:
    limit = settings(3)["initial.broker.registration.timeout.ms"]
    assert limit == START_SECONDS * 1000 > 60_000, "Kafka's own limit"
