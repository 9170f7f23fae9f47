"""Lag in records and seconds, and how a group is doing, on a real broker."""

import json
import time

import pytest
from confluent_kafka import Producer, TopicPartition

from cli_helpers import Joined, Penstock, set_offsets
from kafka_helpers import WAIT_SECONDS, MakeTopic, produce, wait_for
from penstock.core.progress.offset_map import encode
from penstock.kafka import Cluster
from penstock.kafka.admin.consumer_groups import CommittedOffset, Groups


def _produce_at(brokers: str, topic: str, times: list[float]) -> None:
    producer = Producer({"bootstrap.servers": brokers})
    for each in times:
        producer.produce(topic, b"x", partition=0, timestamp=round(each * 1000))
    assert producer.flush(WAIT_SECONDS) == 0


def test_lag_in_seconds_is_the_age_of_the_first_record_not_yet_committed(
    penstock: Penstock, brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    topic, now = make_topic(1), time.time()
    _produce_at(brokers, topic, [now - 5000, now - 4000, now - 3000, now - 1000])
    set_offsets(cluster, group, {(topic, 0): 2})
    (part,) = penstock.json("lag", group, ok=False)["groups"][0]["partitions"]
    asked_in = time.time() - now
    assert part["lag"] == 2
    assert 3000 - 1 <= part["lag_seconds"] <= 3000 + asked_in + 1
    assert part["seconds_to_last_record"] == pytest.approx(2000, abs=0.01)


def test_a_group_that_is_caught_up_has_no_lag_in_seconds_and_exits_with_0(
    penstock: Penstock, brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    topic = make_topic(1)
    produce(brokers, topic, range(3))
    set_offsets(cluster, group, {(topic, 0): 3})
    answer = penstock("lag", group, "--json")
    (part,) = answer.json["groups"][0]["partitions"]
    assert (part["lag"], part["lag_seconds"], part["status"]) == (0, 0, "OK")
    assert part["commit_age_seconds"] >= 0


def test_records_deleted_by_retention_count_as_lost_and_not_as_lag(
    penstock: Penstock, brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    topic = make_topic(1)
    produce(brokers, topic, range(10))
    set_offsets(cluster, group, {(topic, 0): 2})
    _drop_before(cluster, topic, 6)
    (part,) = penstock.json("lag", group, ok=False)["groups"][0]["partitions"]
    assert (part["lag"], part["lost"], part["log_start"]) == (4, 4, 6)
    assert "retention deleted up to 4 records" in penstock("lag", group, ok=False).out


def test_finished_records_above_the_commit_are_counted_from_the_offset_map(
    penstock: Penstock, brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    topic = make_topic(1)
    produce(brokers, topic, range(10))
    offset_map = encode(2, [(3, 6), (8, 9)])
    assert offset_map
    set_offsets(cluster, group, {(topic, 0): CommittedOffset(2, offset_map)})
    (part,) = penstock.json("groups", "describe", group)["groups"][0]["partitions"]
    assert (part["lag"], part["finished_above_commit"]) == (8, 4)


def test_commits_that_do_not_move_are_a_stall_and_that_is_the_exit_code(
    penstock: Penstock, brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    topic, now = make_topic(1), time.time()
    _produce_at(brokers, topic, [now - 100] * 5)
    member = Joined(brokers, group, topic)
    try:
        for _ in range(4):
            member.commit(topic, 0, 2)
            time.sleep(0.3)  # the commits must span more time than passes until they are judged

        def judged() -> bool:
            member.commit(topic, 0, 2)
            answer = penstock("lag", group, ok=False)
            return answer.code == 12

        wait_for(judged, "the verdict STALL")
    finally:
        member.close()


def test_commits_with_a_backlog_show_how_many_members_the_group_should_have(
    penstock: Penstock, brokers: str, group: str, make_topic: MakeTopic
) -> None:
    topic, done = make_topic(2), 0
    _produce_at(brokers, topic, [time.time() - 100] * 20_000)
    missing = penstock("lag", group, "--recommend", ok=False)
    assert (missing.code, f"There is no group {group!r}" in missing.err) == (1, True)
    member = Joined(brokers, group, topic)
    try:
        unknown = penstock("lag", group, "--recommend", ok=False)
        assert unknown.code == 1
        assert f"How much a member of {group} can handle is not known" in unknown.err

        def known() -> bool:
            nonlocal done
            done += 1
            member.commit(topic, 0, done)
            return penstock("lag", group, "--recommend", ok=False).code == 0

        wait_for(known, "a recommendation")
        shown = penstock.json("lag", group, "--recommend")
    finally:
        member.close()
    (handler,) = shown["handlers"]
    assert (shown["members"], shown["recommended"], handler["source"]) == (1, 2, "commits")
    assert (handler["topics"], handler["partitions"], handler["rate_in"]) == ([topic], 2, 0)
    assert 0 < handler["rate_of_a_member"] < 20_000 / 300


def test_ten_thousand_groups_are_listed_and_their_lag_is_read(cluster: Cluster, make_topic: MakeTopic) -> None:
    # A few hundred groups are enough here: the requests are the same, only fewer.
    topic = make_topic(1)
    names = [f"{topic}-{number}" for number in range(600)]
    groups = Groups(cluster)
    for name in names:
        groups.commit(name, {(topic, 0): CommittedOffset(0)})
    assert set(names) <= {each.name for each in groups.of_consumers()}
    found = groups.committed(names)
    assert all(each == {(topic, 0): CommittedOffset(0)} for each in found.values())
    assert set(groups.delete(names).values()) == {None}


def test_watching_shows_each_look_below_the_last_where_there_is_no_terminal(
    penstock: Penstock, brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    topic = make_topic(1)
    produce(brokers, topic, range(3))
    set_offsets(cluster, group, {(topic, 0): 3})
    shown = penstock("lag", group, "--watch", "--every", "10ms", "--times", "2").out
    assert shown.count("HISTORY") == 2
    lines = penstock("lag", group, "--watch", "--every", "10ms", "--times", "2", "--json").out.splitlines()
    assert [json.loads(line)["groups"][0]["group"] for line in lines] == [group, group], "one object a line"


def _drop_before(cluster: Cluster, topic: str, offset: int) -> None:
    for future in cluster.admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result(WAIT_SECONDS)
