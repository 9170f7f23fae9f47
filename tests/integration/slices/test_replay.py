"""A range is replayed on the Spark engine."""

import threading
from typing import Any

import pytest

from kafka_helpers import CatchUp, MakeTopic, committed, of_kind, produce, read_values, wait_for
from kafka_helpers import catch_up as catch_up_locally
from penstock import App, Reject, Replay
from penstock.core.reports import events
from penstock.kafka import Cluster
from penstock.lifecycle import plan_replay
from thread_jobs import run_on_threads


def shop(group: str, source: str, **options: Any) -> App:
    app = App(group)

    @app.consume(source, to=f"{group}.out", dead_letter=f"{group}.dlq", **options)
    def handle(value: int) -> int:
        if value < 0:
            raise Reject("negative")
        return value

    return app


def outputs(brokers: str, group: str) -> list[int]:
    return sorted(int(value or b"") for value in read_values(brokers, f"{group}.out"))


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once", "at-most-once"])
def test_a_replay_handles_just_the_range_and_leaves_the_live_group_alone(
    delivery: Any, brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic(2)
    produce(brokers, source, [1, 2, -3, 4, 5])
    produce(brokers, source, [10, 20, 30], partition=1)
    catch_up_locally(shop(group, source), brokers)
    app = shop(group, source, delivery=delivery)
    span = Replay(from_={(source, 0): 1, (source, 1): 2}, to={(source, 0): 4, (source, 1): 3})
    plan = plan_replay(app, cluster, span)
    plan.apply(app)
    seen = catch_up(app)
    (started,) = of_kind(seen, events.Started)
    assert started.lag == 4
    (stopped,) = of_kind(seen, events.Stopped)
    assert (stopped.read, stopped.written, stopped.dead_lettered) == (4, 3, 1)
    assert plan.finish() == 0
    assert committed(cluster, group, source) == {0: 5, 1: 3}
    assert outputs(brokers, group) == [1, 2, 2, 4, 4, 5, 10, 20, 30, 30]


def test_a_replay_that_one_engine_began_continues_on_the_other_up_to_the_same_end(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, stop = make_topic(), threading.Event()
    produce(brokers, source, range(200))
    app = shop(group, source, max_micro_batch=50)
    options = Replay(from_="earliest", to="latest")
    first = plan_replay(app, cluster, options)
    first.apply(app)

    def run() -> None:
        run_on_threads(app, brokers, stop, patch=monkeypatch, until_caught_up=True)

    thread = threading.Thread(target=run)
    thread.start()
    wait_for(lambda: committed(cluster, first.groups[0], source).get(0, 0) > 0 or not thread.is_alive(), "a commit")
    stop.set()
    thread.join()
    produce(brokers, source, range(1_000, 1_010))
    app = shop(group, source)
    second = plan_replay(app, cluster, options)
    if first.finish():
        assert second.is_continued
        second.apply(app)
        catch_up_locally(app, brokers)
        assert second.finish() == 0
    assert outputs(brokers, group) == list(range(200))


def test_a_dry_run_counts_outcomes_and_writes_nothing(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic()
    produce(brokers, source, [1, -2, 3])
    topics = {topic for topic in cluster.topics() if not topic.startswith("__transaction")}
    before = cluster.end_offsets(cluster.topic_partitions(topics))
    app = shop(group, source, delivery="exactly-once")
    plan = plan_replay(app, cluster, Replay(dry_run=True))
    plan.apply(app)
    (stopped,) = of_kind(catch_up(app), events.Stopped)
    assert (stopped.read, stopped.written, stopped.dead_lettered) == (3, 2, 1)
    assert cluster.end_offsets(cluster.topic_partitions(topics)) == before
    assert f"{group}.out" not in cluster.topics()
