"""The group's offsets follow, and never go back."""

from collections.abc import Iterable, Mapping

import pytest

from penstock.core.records.record import TopicPartition
from penstock.core.reports.events import CommitFailed, Committed, Error, Event
from penstock.errors import ServerError
from penstock.spark.pipelines.group_offsets import GroupOffsets, refuse_members

A: TopicPartition = ("orders", 0)
B: TopicPartition = ("orders", 1)


class FakeCluster:
    """The part of a cluster that commits need."""

    def __init__(self, members: int = 0) -> None:
        self.commits: list[dict[TopicPartition, int]] = []
        self.metadata: list[dict[TopicPartition, str]] = []
        self.refuses = False
        self.count = members
        self.by_others: dict[TopicPartition, int] = {}

    def commit(
        self, _group: str, offsets: Mapping[TopicPartition, int], metadata: Mapping[TopicPartition, str]
    ) -> None:
        if not offsets:
            return
        if self.refuses or self.count:
            raise ServerError("The commit was refused.")
        self.commits.append(dict(offsets))
        self.metadata.append(dict(metadata))

    def committed(self, _group: str, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {tp: self.by_others[tp] for tp in tps if tp in self.by_others}

    def members(self, _group: str) -> int:
        return self.count


def test_only_what_moved_forward_is_committed_and_reported() -> None:
    cluster, events = FakeCluster(), list[Event]()
    group = GroupOffsets(cluster, "shop", {A: 10}, events.append)  # type: ignore[arg-type]
    group.advance({A: 10, B: 0})
    group.advance({A: 9, B: 5})
    assert cluster.commits == [{B: 0}, {B: 5}]
    assert events == [
        Committed(group="shop", member="spark", topic="orders", partition=1, offset=0),
        Committed(group="shop", member="spark", topic="orders", partition=1, offset=5),
    ]


def test_a_refused_commit_is_reported_and_carried_by_the_next() -> None:
    cluster, events = FakeCluster(), list[Event]()
    group = GroupOffsets(cluster, "shop", {}, events.append)  # type: ignore[arg-type]
    cluster.refuses = True
    group.advance({A: 5, B: 7})
    cluster.refuses = False
    group.advance({A: 6, B: 7})
    assert cluster.commits == [{A: 6, B: 7}]
    assert [type(event) for event in events] == [CommitFailed, CommitFailed, Committed, Committed]
    assert getattr(events[0], "reason", "") == "The commit was refused."


def test_members_that_join_later_are_reported_once_and_commits_wait_until_they_are_gone() -> None:
    cluster, events = FakeCluster(), list[Event]()
    group = GroupOffsets(cluster, "shop", {}, events.append)  # type: ignore[arg-type]
    group.advance({A: 5})
    cluster.count = 1
    group.advance({A: 6, B: 6})
    group.advance({A: 7, B: 7})
    (warning,) = events[1:]
    assert isinstance(warning, Error)
    assert not warning.fatal
    assert warning.reason.startswith("Group 'shop' has members now")
    # The committed offset is higher in one partition and lower in the other.
    cluster.count, cluster.by_others = 0, {A: 100, B: 2}
    group.advance({A: 8, B: 8})
    assert cluster.commits == [{A: 5}, {B: 8}]
    assert [type(event) for event in events[2:]] == [Error, Committed]
    group.advance({A: 101, B: 8})
    assert cluster.commits[-1] == {A: 101}


@pytest.mark.parametrize(("members", "said"), [(1, "1 active member,"), (3, "3 active members,")])
def test_a_group_with_members_is_refused(members: int, said: str) -> None:
    with pytest.raises(ServerError, match=f"Group 'shop' has {said}"):
        refuse_members(FakeCluster(members), "shop")  # type: ignore[arg-type]


def test_a_group_without_members_is_taken() -> None:
    refuse_members(FakeCluster(), "shop")  # type: ignore[arg-type]
