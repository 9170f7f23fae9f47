"""A range is replayed on the local engine, beside the live group."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from kafka_helpers import (
    WAIT_SECONDS,
    MakeTopic,
    Running,
    catch_up,
    committed,
    of_kind,
    produce,
    read_records,
    read_values,
    running,
    wait_for,
)
from penstock import App, Record, Reject, Replay, key_like
from penstock import engine as local
from penstock.core.reports import events
from penstock.core.reports.events import Event
from penstock.errors import HandlerError
from penstock.kafka import Cluster
from penstock.lifecycle import RangeReplay, plan_replay

MakeApp = Callable[..., App]


def planned(app: App, cluster: Cluster, start: Any = "earliest", end: Any = "latest", **options: Any) -> RangeReplay:
    return plan_replay(app, cluster, Replay(from_=start, to=end, **options))


def replay(app: App, cluster: Cluster, *span: Any, **options: Any) -> tuple[RangeReplay, list[Event]]:
    plan = planned(app, cluster, *span, **options)
    plan.apply(app)
    seen = catch_up(app, cluster.brokers, per_record=True)
    assert plan.finish() == 0
    return plan, seen


def ends_of_all(cluster: Cluster) -> dict[tuple[str, int], int]:
    topics = [topic for topic in cluster.topics() if topic != "__transaction_state"]
    return cluster.end_offsets(cluster.topic_partitions(topics))


@pytest.fixture
def shop(group: str, make_topic: MakeTopic) -> tuple[MakeApp, str]:
    """A function that makes the app, and its source."""
    source = make_topic(2)

    def make(**options: Any) -> App:
        app = App(group)

        @app.consume(source, to=f"{group}.out", dead_letter=f"{group}.dlq", **options)
        def handle(value: int) -> int:
            if value < 0:
                raise Reject("negative")
            return value

        return app

    return make, source


def outputs(cluster: Cluster, group: str) -> list[int]:
    return sorted(int(value or b"") for value in read_values(cluster.brokers, f"{group}.out"))


def test_a_replay_beside_the_live_group_handles_just_the_range(
    cluster: Cluster, group: str, shop: tuple[MakeApp, str]
) -> None:
    make, source = shop
    produce(cluster.brokers, source, [1, 2, -3, 4, 5])
    produce(cluster.brokers, source, [10, 20, 30], partition=1)
    with running(make(), cluster.brokers):
        wait_for(lambda: committed(cluster, group, source) == {0: 5, 1: 3}, "the live group")
        span = {(source, 0): 1, (source, 1): 2}, {(source, 0): 4, (source, 1): 3}
        plan, seen = replay(make(), cluster, *span)
        assert sorted(each.offset for each in of_kind(seen, events.Dispatched)) == [1, 2, 2, 3]
        assert committed(cluster, group, source) == {0: 5, 1: 3}
        # The live group goes on.
        produce(cluster.brokers, source, [6])
        wait_for(lambda: committed(cluster, group, source) == {0: 6, 1: 3}, "the live group")
    assert outputs(cluster, group) == [1, 2, 2, 4, 4, 5, 6, 10, 20, 30, 30]
    letters = read_records(cluster.brokers, f"{group}.dlq")
    assert {dict(each.headers)["penstock-dlq-group"] for each in letters} == {group.encode(), plan.groups[0].encode()}
    assert committed(cluster, plan.groups[0], source) == {}, "the group of the replay is deleted"


def test_one_route_is_replayed_and_the_records_of_the_others_are_skipped(
    cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, app, seen = make_topic(), App(group), list[Any]()

    @app.consume(source, when=key_like("eu-*"), dead_letter=f"{group}.dlq")
    def europe(value: int) -> None:
        seen.append(("europe", value))

    @app.consume(source, when=key_like("us-*"), dead_letter=f"{group}.dlq")
    def states(value: int) -> None:
        seen.append(("states", value))

    for number, key in enumerate((b"eu-1", b"us-1", b"cn-1", b"eu-2")):
        produce(cluster.brokers, source, [number], key=key)
    _, reported = replay(app, cluster, handler="europe")
    assert sorted(seen) == [("europe", 0), ("europe", 3)]
    (stopped,) = of_kind(reported, events.Stopped)
    assert (stopped.handler, stopped.read, stopped.skipped, stopped.dead_lettered) == ("europe+states", 4, 2, 0)
    skipped = [(each.offset, each.handler, each.reason) for each in of_kind(reported, events.Skipped)]
    reason = "this replay runs only europe"
    assert sorted(skipped) == [(1, "states", reason), (2, "europe+states", reason)]


def test_records_that_arrive_during_a_replay_are_not_handled(
    cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, seen, entered = make_topic(), list[int](), threading.Event()
    app = App(group)

    @app.consume(source, concurrency=4, order="none")
    def handle(value: int, record: Record) -> None:
        if not entered.is_set():
            produce(cluster.brokers, source, range(100, 200))
            entered.set()
        seen.append(record.offset)

    produce(cluster.brokers, source, range(50))
    replay(app, cluster)
    assert sorted(seen) == list(range(50))


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_an_interrupted_replay_continues_and_its_end_does_not_move(
    delivery: Any, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, enough, seen = make_topic(), threading.Event(), list[int]()

    def make() -> App:
        app = App(group)

        @app.consume(source, to=f"{group}.out", delivery=delivery, max_in_flight=20)
        def handle(value: int) -> int:
            seen.append(value)
            if len(seen) >= 50:
                enough.set()
                threading.Event().wait(0.01)
            return value

        return app

    produce(cluster.brokers, source, range(300))
    first = planned(app := make(), cluster)
    first.apply(app)
    member = Running(app, cluster.brokers)
    assert enough.wait(WAIT_SECONDS)
    member.stop()
    assert member.error is None
    left = first.finish()
    assert 0 < left < 300
    produce(cluster.brokers, source, range(1_000, 1_010))
    second = planned(app := make(), cluster)
    assert (second.groups, second.is_continued) == (first.groups, True)
    second.apply(app)
    catch_up(app, cluster.brokers)
    assert second.finish() == 0
    assert sorted(seen) == list(range(300))
    assert outputs(cluster, group) == list(range(300))


def test_a_dry_run_counts_outcomes_and_writes_nothing(
    cluster: Cluster, group: str, make_topic: MakeTopic, shop: tuple[MakeApp, str]
) -> None:
    make, source = shop
    produce(cluster.brokers, source, [1, -2, 3, "x"])
    before = ends_of_all(cluster)
    for delivery in ("at-least-once", "exactly-once", "at-most-once"):
        _, seen = replay(make(delivery=delivery, commit_every="50ms"), cluster, dry_run=True)
        (stopped,) = of_kind(seen, events.Stopped)
        assert (stopped.read, stopped.written, stopped.dead_lettered) == (4, 2, 2)
        assert len(of_kind(seen, events.DeadLettered)) == 2
    assert f"{group}.out" not in cluster.topics()
    # Also in the log of committed offsets, which the first consumer of a cluster creates.
    assert {tp: end for tp, end in ends_of_all(cluster).items() if end != before.get(tp, 0)} == {}


def test_all_outputs_go_to_another_topic(cluster: Cluster, group: str, shop: tuple[MakeApp, str]) -> None:
    make, source = shop
    produce(cluster.brokers, source, [1, -2, 3])
    replay(make(), cluster, to_topic=f"{group}.again")
    assert {*read_values(cluster.brokers, f"{group}.again")} == {b"1", b"3"}
    assert len(read_values(cluster.brokers, f"{group}.dlq")) == 1
    assert f"{group}.out" not in cluster.topics()


def test_a_failed_replay_stops_the_app_and_the_next_one_continues_at_the_record(
    cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, is_fixed, seen = make_topic(), False, list[int]()

    def make() -> App:
        app = App(group)

        @app.consume(source)
        def handle(value: int) -> None:
            if value == 3 and not is_fixed:
                raise Reject("not yet")
            seen.append(value)

        return app

    produce(cluster.brokers, source, range(6))
    plan = planned(app := make(), cluster)
    plan.apply(app)
    with pytest.raises(HandlerError, match="not yet"):
        local.run(app, brokers=cluster.brokers, emit=lambda _: None, stop=threading.Event(), until_caught_up=True)
    is_fixed = True
    replay(make(), cluster)
    assert seen == list(range(6))


def test_a_range_of_a_compacted_log_ends_at_its_end(cluster: Cluster, group: str, make_topic: MakeTopic) -> None:
    """Transactions leave offsets without records, here also as the last one of the range."""
    source, seen = make_topic(), list[int]()
    feeder = App(f"{group}-feeder")
    raw = make_topic()

    @feeder.consume(raw, to=source, delivery="exactly-once")
    def copy(value: int) -> int:
        return value

    produce(cluster.brokers, raw, range(5))
    catch_up(feeder, cluster.brokers)
    app = App(group)

    @app.consume(source)
    def handle(value: int) -> None:
        seen.append(value)

    end = cluster.end_offsets([(source, 0)])[source, 0]
    assert end > 5, "with the marker"
    replay(app, cluster, {(source, 0): 0}, {(source, 0): end})
    assert seen == list(range(5))


def test_a_program_replays_a_range_beside_the_live_group_and_reads_the_counts(
    cluster: Cluster, group: str, shop: tuple[MakeApp, str]
) -> None:
    make, source = shop
    produce(cluster.brokers, source, [1, -2, 3])
    produce(cluster.brokers, source, [10, 20], partition=1)
    app, live = make(), make()
    topics = cluster.topics().keys()
    with running(live, cluster.brokers):
        wait_for(lambda: committed(cluster, group, source) == {0: 3, 1: 2}, "the live group")
        trial = Replay(from_=f"{source}:0=0", dry_run=True)
        app.run(brokers=cluster.brokers, replay=trial)
        found = app.replay_result
        assert found is not None
        assert (found.read, found.written, found.dead_lettered, found.skipped) == (3, 2, 1, 0)
        assert (found.groups, found.left, found.problem) == ((), None, None)
        seen = list[Event]()
        again = Replay(from_={(source, 0): 2}, handler="handle", to_topic=f"{group}.again")
        app.start(brokers=cluster.brokers, replay=again, on_event=seen.append)
        assert app.wait(WAIT_SECONDS)
        found = app.replay_result
        assert found is not None
        assert (found.read, found.written, found.left) == (1, 1, 0)
        assert [(each.partition, each.start, each.end) for each in found.ranges] == [(0, 2, 3)]
        assert of_kind(seen, events.RangeRead) == [*found.ranges]
        assert found.groups[0] not in {each.group for each in app.handlers}
    assert read_values(cluster.brokers, f"{group}.again") == [b"3"]
    assert cluster.topics().keys() - topics == {f"{group}.out", f"{group}.dlq", f"{group}.again"}
    # The app itself has not changed: it runs live, and as the live group.
    produce(cluster.brokers, source, [4])
    app.run(brokers=cluster.brokers, until_caught_up=True)
    assert app.replay_result is None
    assert committed(cluster, group, source) == {0: 4, 1: 2}
    assert outputs(cluster, group) == [1, 3, 4, 10, 20]
