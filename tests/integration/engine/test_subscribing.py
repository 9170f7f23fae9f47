"""Subscriptions and start positions: patterns, partitions, offsets and times."""

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from kafka_helpers import QUICK, MakeTopic, catch_up, committed, of_kind, produce, running, wait_for
from penstock import App, Record
from penstock.core.reports import events
from penstock.errors import ConfigError, ServerError, TopicError
from penstock.kafka import Cluster

Seen = list[tuple[str, int, int]]


def make_app(group: str, *topics: str, **options: Any) -> tuple[App, Seen]:
    app, seen = App(group), Seen()

    @app.consume(*topics, **options)
    def handle(value: bytes, record: Record) -> None:
        seen.append((record.topic, record.partition, record.offset))

    return app, seen


# Patterns.


def test_topics_that_a_pattern_matches_are_consumed_and_new_ones_too(
    brokers: str, cluster: Cluster, group: str
) -> None:
    pattern, dead_letters = rf"{group}\.orders\.(north|south[0-9]+)", f"{group}.dlq"
    cluster.create_topics([f"{group}.orders.north"], partitions=3)
    cluster.create_topics([f"{group}.orders.northwest", f"x.{group}.orders.north"], partitions=1)
    for topic in (f"{group}.orders.north", f"{group}.orders.northwest", f"x.{group}.orders.north"):
        produce(brokers, topic, range(5))
    app, seen = make_app(
        group, pattern=pattern, dead_letter=dead_letters, settings={"topic.metadata.refresh.interval.ms": 500}
    )
    with running(app, brokers) as member:
        wait_for(lambda: len(seen) == 5, "the topic that is there")
        cluster.create_topics([f"{group}.orders.south1"], partitions=1)
        produce(brokers, f"{group}.orders.south1", range(5))
        wait_for(lambda: len(seen) == 10, "the topic that came later")
    assert {topic for topic, _, _ in seen} == {f"{group}.orders.north", f"{group}.orders.south1"}
    assert of_kind(member.events, events.Started)[0].topics == (f"{group}.orders.north",)
    assert cluster.topics()[dead_letters] == 3, "as many as the largest source"
    assert committed(cluster, group, f"{group}.orders.south1") == {0: 5}
    again, repeated = make_app(group, pattern=pattern)
    catch_up(again, brokers)
    assert repeated == []


def test_two_patterns_of_one_group_must_not_match_the_same_topic(brokers: str, cluster: Cluster, group: str) -> None:
    cluster.create_topics([f"{group}.a.b"], partitions=1)
    app = App(group)
    app.consume(pattern=rf"{group}\.a.*")(lambda _: None)
    app.consume(pattern=rf"{group}\..*b")(lambda _: None)
    with pytest.raises(ConfigError, match=f"both consume '{group}.a.b'"):
        catch_up(app, brokers)


# Named partitions.


def test_named_partitions_are_consumed_without_the_group_s_assignment_and_committed_to_it(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, moments = make_topic(3), []
    for partition in range(3):
        produce(brokers, source, range(10), partition=partition)
    app, seen = make_app(
        group,
        partitions=[(source, 0), (source, 2)],
        on_assigned=lambda tps: moments.append(("assigned", sorted(tps))),
        on_revoked=lambda tps: moments.append(("revoked", sorted(tps))),
    )
    reported = catch_up(app, brokers)
    assert {(partition, offset) for _, partition, offset in seen} == {(p, n) for p in (0, 2) for n in range(10)}
    assert committed(cluster, group, source) == {0: 10, 2: 10}
    assert moments == [(what, [(source, 0), (source, 2)]) for what in ("assigned", "revoked")]
    assert len(of_kind(reported, events.Revoked)) == 2
    produce(brokers, source, range(3), partition=2)
    catch_up(app, brokers)
    assert len(seen) == 23


def test_a_partition_that_does_not_exist_is_named(brokers: str, group: str, make_topic: MakeTopic) -> None:
    source = make_topic(2)
    app, _ = make_app(group, partitions=[(source, 2)])
    with pytest.raises(TopicError, match=f"Topic '{source}' has no partition 2") as caught:
        catch_up(app, brokers)
    assert caught.value.hint == "Use partitions 0 to 1."


def test_named_partitions_are_refused_while_the_group_has_members(
    brokers: str, group: str, make_topic: MakeTopic
) -> None:
    source = make_topic()
    member, _ = make_app(group, source)
    alone, _ = make_app(group, partitions=[(source, 0)])
    with running(member, brokers) as background:
        wait_for(lambda: of_kind(background.events, events.Assigned), "an assignment")
        with pytest.raises(ServerError, match="has active members"):
            catch_up(alone, brokers)


# Where to start.


def test_start_counts_for_partitions_without_a_commit_only(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source = make_topic(3)
    for partition in range(3):
        produce(brokers, source, range(10), partition=partition)
    cluster.commit(group, {(source, 0): 2})
    app, seen = make_app(group, source, start={(source, 0): 5, (source, 1): 7})
    (started,) = of_kind(catch_up(app, brokers), events.Started)
    assert {p: min(o for _, q, o in seen if q == p) for p in range(3)} == {0: 2, 1: 7, 2: 0}
    assert started.lag == len(seen) == 8 + 3 + 10


def test_start_and_from_at_a_moment(brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic) -> None:
    source = make_topic(2)
    for partition in range(2):
        produce(brokers, source, range(5), partition=partition)
    time.sleep(0.01)
    moment = datetime.now(UTC)
    time.sleep(0.01)
    produce(brokers, source, range(3))
    app, seen = make_app(group, source, start=moment)
    catch_up(app, brokers)
    # Partition 1 has nothing from that moment on, so it starts at its end.
    assert seen == [(source, 0, 5), (source, 0, 6), (source, 0, 7)]
    assert committed(cluster, group, source) == {0: 8, 1: 5}
    seen.clear()
    again, seen = make_app(group, source, from_=moment)
    catch_up(again, brokers)
    assert seen == [(source, 0, 5), (source, 0, 6), (source, 0, 7)]


def test_the_latest_is_where_the_log_ended_at_the_assignment(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source = make_topic()
    produce(brokers, source, range(10))
    app, seen = make_app(group, source, start="latest")
    with running(app, brokers) as member:
        wait_for(lambda: of_kind(member.events, events.Assigned), "the assignment")
        produce(brokers, source, range(1))
        wait_for(lambda: seen, "the record that came after it")
    assert seen == [(source, 0, 10)]
    assert of_kind(member.events, events.Assigned)[0].offset == 10
    # No record arrived, and still the start is committed.
    idle = f"{group}-idle"
    catch_up(make_app(idle, source, start="latest")[0], brokers)
    assert committed(cluster, idle, source) == {0: 11}


def test_from_goes_back_once_and_says_so(brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic) -> None:
    source = make_topic(2)
    for partition in range(2):
        produce(brokers, source, range(10), partition=partition)
    catch_up(make_app(group, source)[0], brokers)
    assert committed(cluster, group, source) == {0: 10, 1: 10}
    app, seen = make_app(group, source, from_={(source, 1): 4})
    reported = catch_up(app, brokers)
    assert sorted(seen) == [(source, 1, offset) for offset in range(4, 10)]
    (forced,) = of_kind(reported, events.StartOverridden)
    assert (forced.partition, forced.offset, forced.committed) == (1, 4, 10)
    assert of_kind(reported, events.Started)[0].lag == 6
    assert committed(cluster, group, source) == {0: 10, 1: 10}


def test_from_does_not_count_again_when_a_partition_comes_back_in_the_same_run(
    brokers: str, group: str, make_topic: MakeTopic
) -> None:
    source = make_topic(2)
    for partition in range(2):
        produce(brokers, source, range(10), partition=partition)
    catch_up(make_app(group, source)[0], brokers)
    app, seen = make_app(group, source, from_="earliest", settings=QUICK)
    other, elsewhere = make_app(group, source, settings=QUICK)
    with running(app, brokers) as member:
        wait_for(lambda: len(seen) == 20, "everything once more")
        with running(other, brokers) as guest:
            wait_for(lambda: of_kind(guest.events, events.Assigned), "a partition to move")
        wait_for(lambda: len(of_kind(member.events, events.Assigned)) == 3, "it to come back")
        produce(brokers, source, range(1))
        produce(brokers, source, range(1), partition=1)
        wait_for(lambda: len(seen) == 22, "the new records")
    assert len(of_kind(member.events, events.StartOverridden)) == 2
    assert not elsewhere
