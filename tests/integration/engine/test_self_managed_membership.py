"""Self-managed members: all kinds of assignors in live groups, votes, fencing, and the reported rebalances."""

import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import NewPartitions

from cli_helpers import Penstock, commit_log_partitions
from kafka_helpers import QUICK, WAIT_SECONDS, MakeTopic, Running, committed, of_kind, produce, running, wait_for
from penstock import App, Record
from penstock.assign import Assignment, CooperativeSticky, Group
from penstock.core.records.record import TopicPartition
from penstock.core.reports import events
from penstock.core.reports.rebalance import JOINED, LEFT, PARTITIONS_CHANGED, TOPICS_CHANGED, Rebalance
from penstock.errors import ConfigError
from penstock.kafka import Cluster
from penstock.kafka.client.kafka_python_settings import kafka_python_config
from penstock.kafka.group.coordinator import CoordinatorNetwork, Identity
from penstock.ops.runs import registered

SETTINGS = {**QUICK, "topic.metadata.refresh.interval.ms": 500}
Seen = Counter[tuple[str, int, int]]


def make_app(group: str, *topics: str, seen: Seen | None = None, **options: Any) -> App:
    app = App(group)
    counted = Seen() if seen is None else seen

    @app.consume(*topics, settings=SETTINGS, **options)
    def handle(value: bytes, record: Record) -> None:
        counted[record.topic, record.partition, record.offset] += 1

    return app


def rebalances(member: Running) -> list[Rebalance]:
    return [event.rebalance for event in of_kind(member.events, events.Rebalanced)]


def owned(member: Running) -> set[TopicPartition]:
    tps: set[TopicPartition] = set()
    for event in list(member.events):
        if isinstance(event, events.Assigned):
            tps.add((event.topic, event.partition))
        elif isinstance(event, events.Revoked | events.Lost):
            tps.discard((event.topic, event.partition))
    return tps


class FastFirst:
    """A user's assignor.

    All partitions go to members whose user data is ``fast``. It records what the engine passes to it.
    """

    name = "fast-first"
    needs_lag = True

    def __init__(self, *, fast: bool) -> None:
        self._fast = fast
        self.reported: list[set[tuple[bytes | None, str | None]]] = []
        self.lags: list[list[tuple[int, ...]]] = []

    def user_data(self, _owned: Sequence[TopicPartition], _generation: int) -> bytes:
        return b"fast" if self._fast else b"slow"

    def assign(self, group: Group) -> Assignment:
        self.reported.append({(member.user_data, member.rack) for member in group.members})
        self.lags.append([topic.lag for topic in group.topics.values()])
        fast = [member for member in group.members if member.user_data == b"fast"] or list(group.members)
        shares: dict[str, list[TopicPartition]] = {member.id: [] for member in group.members}
        for number, tp in enumerate(group.topic_partitions()):
            shares[fast[number % len(fast)].id].append(tp)
        return Assignment(shares)


def test_a_users_assignor_sees_the_lag_the_racks_and_the_data_that_members_write_for_it(
    brokers: str, group: str, make_topic: MakeTopic
) -> None:
    source, slow, fast = make_topic(4), FastFirst(fast=False), FastFirst(fast=True)
    produce(brokers, source, range(3), partition=1)
    with running(make_app(group, source, assignor=slow, rack="r1"), brokers) as first:
        wait_for(lambda: len(owned(first)) == 4, "all to be the first one's")
        with running(make_app(group, source, assignor=fast, rack="r2"), brokers) as second:
            wait_for(lambda: len(owned(second)) == 4 and not owned(first), "all to move to the fast one")
    assert {(b"slow", "r1"), (b"fast", "r2")} in slow.reported
    assert slow.lags[0] == [(0, 3, 0, 0)]
    assert not of_kind([*first.events, *second.events], events.Error)


def test_members_with_different_lists_vote_and_new_topics_and_partitions_are_noticed(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, seen = make_topic(4), Seen()
    one = make_app(group, pattern=f"{source}.*", seen=seen, assignor=["lag-balanced", "topic-spread"])
    other = make_app(group, source, seen=seen, assignor=["topic-spread", "consistent-hash"])
    with running(one, brokers) as first:
        wait_for(lambda: len(owned(first)) == 4, "the first assignment")
        assert rebalances(first)[0].strategy == "lag-balanced", "alone, its first vote counts"
        with running(other, brokers) as second:
            wait_for(lambda: len(owned(second)) == 2, "its share")
            reported = next(each for each in rebalances(first) if each.members is not None and len(each.members) == 2)
            assert reported.strategy == "topic-spread", "the only assignor that both know"
            assert {voter.votes for voter in reported.members or ()} == {
                ("lag-balanced", "topic-spread"),
                ("topic-spread", "consistent-hash"),
            }
            cluster.create_topics([f"{source}.new"], partitions=1)
            produce(brokers, f"{source}.new", range(3))
            wait_for(lambda: sum(topic == f"{source}.new" for topic, _, _ in seen) == 3, "the new topic's records")
            cluster.admin.create_partitions([NewPartitions(source, 6)])[source].result()
            wait_for(lambda: len(owned(first) | owned(second)) == 7, "the new partitions")
    reasons = {each.reason for each in rebalances(first)}
    assert {JOINED, TOPICS_CHANGED, PARTITIONS_CHANGED, LEFT} <= reasons
    assert not of_kind([*first.events, *second.events], events.Error)


def test_a_member_that_the_coordinator_gave_up_loses_its_records_commits_nothing_and_joins_again(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, gate, waiting, seen = make_topic(), threading.Event(), threading.Event(), Counter[int]()
    app = App(group)

    @app.consume(source, assignor=CooperativeSticky(), settings=SETTINGS, commit_every="100ms")
    def handle(value: int) -> None:
        seen[value] += 1
        if value == 5 and not gate.is_set():
            waiting.set()
            assert gate.wait(WAIT_SECONDS)

    produce(brokers, source, range(10))
    with running(app, brokers) as member:
        assert waiting.wait(WAIT_SECONDS)
        wait_for(lambda: committed(cluster, group, source) == {0: 5}, "what is finished to be committed")
        network = CoordinatorNetwork(kafka_python_config(brokers, {}))
        name = rebalances(member)[0].member_id or ""
        network.connect(group).leave(Identity(group, name, -1, None), "a test throws it out")
        network.close()
        wait_for(lambda: of_kind(member.events, events.Lost), "the member to learn of it")
        gate.set()
        wait_for(lambda: committed(cluster, group, source) == {0: 10}, "the rest")
    assert seen == {**dict.fromkeys(range(10), 1), 5: 2}, "only the records in progress are delivered again"
    lost = next(at for at, event in enumerate(member.events) if isinstance(event, events.Lost))
    reassigned = next(at for at, event in enumerate(member.events) if isinstance(event, events.Assigned) and at > lost)
    assert not of_kind(member.events[lost:reassigned], events.Committed)
    again = next(each for each in rebalances(member) if each.lost)
    assert again.reason == "the coordinator removed this member from the group"
    assert again.lost == again.taken == ((source, 0),)


def test_an_assignor_that_fails_stops_the_app_with_a_reason(brokers: str, group: str, make_topic: MakeTopic) -> None:
    class Broken:
        name = "broken"

        def assign(self, _group: Group) -> Assignment:
            raise ZeroDivisionError("x / 0")

    member = Running(make_app(group, make_topic(), assignor=Broken()), brokers)
    member.join()
    assert isinstance(member.error, ConfigError)
    assert "Assignor 'broken' raised ZeroDivisionError: x / 0" in str(member.error)


def test_the_history_of_a_group_combines_the_events_of_its_members(
    brokers: str,
    group: str,
    make_topic: MakeTopic,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = make_topic(4)
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    penstock = Penstock(brokers, monkeypatch, capsys)
    with running(make_app(group, source, assignor=CooperativeSticky()), brokers) as first:
        wait_for(lambda: len(owned(first)) == 4, "all to be the first one's")
        wait_for(
            lambda: penstock.json("plan", group)["plans"][0]["estimate"] is None, "a group of only self-managed members"
        )
        with running(make_app(group, source), brokers) as second:
            wait_for(lambda: len(owned(first)) == len(owned(second)) == 2, "both to have their share")
            assert "librdkafka" in penstock.json("plan", group)["plans"][0]["estimate"]
        wait_for(lambda: len(owned(first)) == 4, "all to be back")
    assert "No run on this machine" in penstock("groups", "history", group, ok=False).err
    with registered("shop", engine="local", groups=[group], warn=pytest.fail) as hear:
        for event in [*first.events, *second.events]:
            hear(event)
    reported = penstock.json("groups", "history", group)["rebalances"]
    leader = next(each for each in reported if each["members"] is not None and len(each["members"]) == 2)
    assert leader["reason"].startswith("joined: ")
    assert leader["strategy"] == "cooperative-sticky"
    assert {tuple(each["votes"] or ()) for each in leader["members"]} == {("cooperative-sticky",), ()}
    found = leader["coordinator"]
    assert {found["partition"]} == commit_log_partitions(brokers)[group]
    (mine,) = [one for one in leader["reports"] if one["membership"] == "self-managed"]
    assert [phase["name"] for phase in mine["phases"]] == ["joined", "assigned", "synced", "taken over", "given up"]
    moved = {tp for _, tp in mine["given_up"]}
    assert len(moved) == 2
    native = [one for each in reported for one in each["reports"] if one["membership"] == "native"]
    assert {one["reason"] for one in native} >= {JOINED, LEFT}
    assert JOINED in {one["reason"] for one in leader["reports"]}, "both report the same generation"
    names = {one["member"] for one in native}
    taken = [gap for each in reported for gap in each["without_owner"] if gap["owner"] in names]
    assert {gap["partition"] for gap in taken} == moved
    assert all(gap["seconds"] > 0 for gap in taken), "from the end of one ownership to the start of the next"
    shown = penstock("groups", "history", group, "--last", "100").out
    for text in ("leads __consumer_offsets[", "this member joined", "this member left", f"left: {group}-"):
        assert text in shown
