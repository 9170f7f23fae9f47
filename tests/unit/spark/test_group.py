"""The group's offsets follow, and never go back."""

from collections.abc import Mapping

import pytest

from penstock.core.events import CommitFailed, Committed, Event
from penstock.core.record import TopicPartition
from penstock.errors import ServerError
from penstock.spark.group import GroupOffsets, refuse_members

A: TopicPartition = ("orders", 0)
B: TopicPartition = ("orders", 1)


class FakeCluster:
    """As much of a cluster as committing needs."""

    def __init__(self, members: int = 0) -> None:
        self.commits: list[dict[TopicPartition, int]] = []
        self.refuses = False
        self._members = members

    def commit(self, _group: str, offsets: Mapping[TopicPartition, int]) -> None:
        if self.refuses:
            raise ServerError("The group has members.")
        self.commits.append(dict(offsets))

    def members(self, _group: str) -> int:
        return self._members


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
    assert "members" in getattr(events[0], "reason", "")


@pytest.mark.parametrize(("members", "said"), [(1, "1 active member,"), (3, "3 active members,")])
def test_a_group_with_members_is_refused(members: int, said: str) -> None:
    with pytest.raises(ServerError, match=f"Group 'shop' has {said}"):
        refuse_members(FakeCluster(members), "shop")  # type: ignore[arg-type]


def test_a_group_without_members_is_taken() -> None:
    refuse_members(FakeCluster(), "shop")  # type: ignore[arg-type]
