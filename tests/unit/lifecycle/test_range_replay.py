"""The plan of a replay: what it covers, how it continues, and what it leaves in Kafka."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from penstock import App, Record, Replay
from penstock.app import attempts
from penstock.core.failures.outcome import DONE, Skipped
from penstock.core.records.record import TopicPartition
from penstock.core.reports.events import Stopped
from penstock.errors import ConfigError, ServerError, TopicError
from penstock.lifecycle import RangeReplay, plan_replay

A, B = ("orders", 0), ("orders", 1)


class FakeCluster:
    """Topics with logs, and the committed offsets of groups."""

    def __init__(self, **ends: list[int]) -> None:
        self.logs = {(topic, number): end for topic, each in ends.items() for number, end in enumerate(each)}
        self.groups: dict[str, dict[TopicPartition, int]] = {}

    def require_topics(self, names: Iterable[str]) -> dict[str, int]:
        return {name: sum(topic == name for topic, _ in self.logs) for name in names}

    def start_offsets(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(tps, 0)

    def end_offsets(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {tp: self.logs[tp] for tp in tps}

    def committed(self, group: str, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        kept = self.groups.get(group, {})
        return {tp: kept[tp] for tp in tps if tp in kept}

    stable_offsets = committed

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        self.groups.setdefault(group, {}).update(offsets)

    def delete_group(self, group: str) -> None:
        self.groups.pop(group, None)


def shop() -> App:
    app = App("shop")

    @app.consume("orders", to="invoices")
    def invoice(order: bytes) -> bytes:
        return order

    @app.consume("payments", group="books")
    def book(payment: bytes) -> None: ...

    return app


def planned(cluster: FakeCluster, app: App | None = None, *, start: Any = "earliest", **options: Any) -> RangeReplay:
    replay = Replay(from_=start, to=options.pop("end", "latest"), **options)
    return plan_replay(app or shop(), cluster, replay)  # type: ignore[arg-type]


def test_each_group_of_the_app_gets_a_group_of_its_own_and_each_handler_its_range() -> None:
    cluster, app = FakeCluster(orders=[5, 0], payments=[7]), shop()
    replay = planned(cluster, app)
    assert replay.left == 12
    first, second = replay.groups
    assert first.startswith("books-replay-")
    assert second.startswith("shop-replay-")
    assert cluster.groups == {}, "a plan changes nothing"
    replay.apply(app)
    assert {each.name: each.partitions for each in app.handlers} == {"invoice": (A, B), "book": (("payments", 0),)}
    assert cluster.groups[second] == {A: 0, B: 0}


def test_a_replay_continues_where_it_stopped_and_leaves_out_what_came_later() -> None:
    cluster, app = FakeCluster(orders=[5, 0], payments=[]), shop()
    replay = planned(cluster, app, handler=["invoice"])
    assert not replay.is_continued
    replay.apply(app)
    (group,) = replay.groups
    cluster.commit(group, {A: 2})
    cluster.logs |= {A: 50, B: 50}
    again = planned(cluster, handler=["invoice"])
    assert again.is_continued
    assert again.left == 3
    assert [(each.partition, each.start, each.end) for each in again.ranges] == [(0, 2, 5), (1, 0, 0)]


def test_a_finished_replay_leaves_no_group_and_runs_again_from_the_start() -> None:
    cluster, app = FakeCluster(orders=[5], payments=[1]), shop()
    replay = planned(cluster, app, handler=["invoice"])
    replay.apply(app)
    (group,) = replay.groups
    cluster.commit(group, {A: 4})
    assert replay.finish() == 1
    assert group in cluster.groups
    cluster.commit(group, {A: 5})
    assert replay.finish() == 0
    assert cluster.groups == {}
    assert planned(cluster, handler=["invoice"]).left == 5


def test_a_dry_run_leaves_nothing_in_kafka() -> None:
    cluster, app = FakeCluster(orders=[5], payments=[1]), shop()
    replay = planned(cluster, app, dry_run=True)
    replay.apply(app)
    replay.finish()
    assert cluster.groups == {}
    assert replay.groups == []
    assert all(handler.is_dry_run for handler in app.handlers)


def test_the_result_says_what_is_left_and_what_could_not_be_deleted() -> None:
    cluster, app = FakeCluster(orders=[5], payments=[1]), shop()
    replay = planned(cluster, app, handler="invoice")
    replay.apply(app)
    cluster.commit(replay.groups[0], {A: 4})
    assert (replay.result([]).left, replay.result([]).problem) == (1, None)
    cluster.commit(replay.groups[0], {A: 5})

    def refuse(group: str) -> None:
        raise ServerError(f"{group} is not empty.")

    cluster.delete_group = refuse  # type: ignore[method-assign]
    found = replay.result([])
    assert found.left is None
    assert "could not be looked up or deleted: shop-replay-" in (found.problem or "")


def test_the_result_of_a_dry_run_has_the_counts_of_all_handlers() -> None:
    replay = planned(FakeCluster(orders=[5], payments=[1]), dry_run=True)
    counts = {"read": 3, "written": 2, "dead_lettered": 1, "skipped": 4}
    stopped = [Stopped(group="shop", handler=name, seconds=0.1, **counts) for name in ("invoice", "book")]
    found = replay.result(stopped)
    assert (found.read, found.written, found.dead_lettered, found.skipped) == (6, 4, 2, 8)
    assert (found.left, found.groups, [*found.ranges]) == (None, (), replay.ranges)


def test_after_a_replay_also_a_failed_one_the_app_is_as_before() -> None:
    cluster, app = FakeCluster(orders=[5], payments=[1]), shop()
    before = app.declarations

    def fail() -> None:
        with app.restored():
            planned(cluster, app, handler="book").apply(app)
            assert [handler.name for handler in app.handlers] == ["book"]
            raise ServerError("gone")

    with pytest.raises(ServerError, match="gone"):
        fail()
    assert app.declarations == before


def routed() -> App:
    app = App("shop")

    @app.consume("orders", when={"type": "created"}, to="invoices")
    def create(order: bytes) -> bytes:
        return order

    @app.consume("orders", when={"type": "cancelled"})
    def cancel(order: bytes) -> None: ...

    @app.consume("orders")
    def rest(order: bytes) -> None: ...

    return app


def test_routes_are_replayed_together_and_keep_their_order() -> None:
    cluster, app = FakeCluster(orders=[5, 3]), routed()
    replay = planned(cluster, app, to_topic="again")
    (group,) = replay.groups
    assert replay.left == 8
    replay.apply(app)
    (only,) = app.handlers
    assert [route.name for route in only.routes] == ["create", "cancel", "rest"]
    assert (only.group, only.partitions, only.output_topics) == (group, (A, B), ("again",))
    assert [route.output_topics for route in only.routes] == [("again",), (), ()]


def test_one_route_is_replayed_by_its_name_and_the_records_of_the_others_are_skipped() -> None:
    cluster, app = FakeCluster(orders=[5]), routed()
    replay = planned(cluster, app, handler=["cancel"])
    assert replay.groups != planned(cluster, routed()).groups, "it is another replay than that of all routes"
    assert [each.handler for each in replay.ranges] == ["cancel"]
    replay.apply(app)
    (only,) = app.handlers
    attempt = attempts(only)
    found = [
        attempt(Record("orders", 0, 0, None, b"x", (("type", kind),)), 1) for kind in (b"created", b"cancelled", b"odd")
    ]
    reason = "this replay runs only cancel"
    assert found == [Skipped(reason), DONE, Skipped(reason)]
    assert [each.handler for each in found] == ["create", "cancel", "rest"]


def test_naming_all_routes_or_their_member_replays_all_of_them() -> None:
    cluster = FakeCluster(orders=[5])
    groups = planned(cluster, routed()).groups
    assert planned(cluster, routed(), handler=["rest", "cancel", "create"]).groups == groups
    assert planned(cluster, routed(), handler=["create+cancel+rest"]).groups == groups
    with pytest.raises(ConfigError, match="has no handler 'cancle'") as unknown:
        planned(cluster, routed(), handler=["cancle"])
    assert "cancel" in unknown.value.hint


def test_offsets_select_partitions_and_handlers() -> None:
    cluster, app = FakeCluster(orders=[5, 5], payments=[7]), shop()
    replay = planned(cluster, app, start={B: 2})
    replay.apply(app)
    assert [(each.name, each.partitions) for each in app.handlers] == [("invoice", (B,))]
    assert replay.left == 3


def test_a_partition_that_nobody_consumes_an_offset_that_is_not_there_and_a_turned_range_are_refused() -> None:
    cluster = FakeCluster(orders=[5], payments=[7])
    with pytest.raises(TopicError, match=r"names orders\[9\]") as refused:
        planned(cluster, start={("orders", 9): 0})
    assert "invoice consumes orders" in refused.value.hint
    with pytest.raises(TopicError, match="holds the offsets 0 to 4"):
        planned(cluster, start={A: 3}, end={A: 8})
    with pytest.raises(TopicError, match="range of handler invoice ends before it begins"):
        planned(cluster, start={A: 3}, end={A: 1})


def test_an_unknown_handler_and_contradicting_options_are_refused() -> None:
    cluster = FakeCluster(orders=[5], payments=[7])
    with pytest.raises(ConfigError, match="has no handler 'invoise'") as refused:
        planned(cluster, handler=["invoise"])
    assert "invoice" in refused.value.hint
    with pytest.raises(ConfigError, match="Handler book cannot be replayed: --to-topic"):
        planned(cluster, to_topic="new")
    assert planned(cluster, to_topic="new", handler=["invoice"]).left == 5


def test_an_app_with_pipelines_too_must_name_its_handlers() -> None:
    app, cluster = shop(), FakeCluster(orders=[5], payments=[7])

    @app.pipeline("events", to="rows")
    def rows(events: Any) -> Any: ...

    with pytest.raises(ConfigError, match="handlers and DataFrame pipelines"):
        planned(cluster, app)
    replay = planned(cluster, app, handler=["invoice"])
    replay.apply(app)
    assert app.pipelines == ()


def test_pipelines_alone_cannot_be_replayed() -> None:
    app = App("lake")

    @app.pipeline("events", to="rows")
    def rows(events: Any) -> Any: ...

    with pytest.raises(ConfigError, match="'lake' has no handlers, and replays are only for handlers"):
        planned(FakeCluster(events=[5]), app)
