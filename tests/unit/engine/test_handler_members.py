"""Members of one handler learn that other processes have finished the partitions that moved there."""

from collections.abc import Iterable
from typing import Any, cast

from penstock import App, Rate
from penstock.engine.handler_members import HandlerMembers
from penstock.engine.member import HandlerMember
from penstock.kafka import Cluster

MOVED, KEPT = ("orders", 0), ("orders", 1)


class TwoPartitions:
    """A cluster with a topic of two partitions, each with ten records."""

    brokers = "localhost:1"

    def __init__(self) -> None:
        self.commits = {MOVED: 4}
        self.partitions = 2

    def require_topics(self, names: Iterable[str]) -> dict[str, int]:
        return dict.fromkeys(names, self.partitions)

    def topic_partitions(self, _topics: Iterable[str]) -> list[tuple[str, int]]:
        return []

    def end_offsets(self, tps: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        return dict.fromkeys(tps, 10)

    def topic_ids(self, names: Iterable[str]) -> dict[str, str]:
        return dict.fromkeys(names, "id")

    def committed(self, _group: str, tps: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        return {tp: self.commits[tp] for tp in tps if tp in self.commits}


def test_a_partition_that_moved_to_another_process_has_caught_up_when_that_process_has_committed_it() -> None:
    app, cluster = App("shop"), TwoPartitions()
    app.consume("orders")(lambda _: None)
    options: dict[str, Any] = {"per_record": False, "until_caught_up": True}
    members = HandlerMembers(app.handlers[0], cast("Cluster", cluster), lambda _: None, **options)
    catch_up = members._shared.catch_up
    catch_up.began([MOVED, KEPT])
    members.check_caught_up()
    assert catch_up.unfinished == {MOVED, KEPT}, "the other process is at offset 4 of 10"
    cluster.commits[MOVED] = 10
    members.check_caught_up()
    assert catch_up.unfinished == {KEPT}
    assert catch_up.have_finished([MOVED])


def test_partitions_are_counted_for_a_rate_that_is_shared_since_a_command() -> None:
    app, cluster = App("shop"), TwoPartitions()
    app.consume("orders")(lambda _: None)
    options: dict[str, Any] = {"per_record": False, "until_caught_up": False}
    members = HandlerMembers(app.handlers[0], cast("Cluster", cluster), lambda _: None, **options)
    known = members._shared.known_partitions
    cluster.partitions = 8
    members.count_partitions()
    assert known.count == 2, "nothing needs it"
    (member,) = members.members
    assert isinstance(member, HandlerMember)
    member._dispatcher.rate.set(Rate(10, shared=True))
    members.count_partitions()
    assert known.count == 8
