"""Tests of the assignor, which is a pure function: no Kafka."""

from zones import ByZone

from penstock.assign import Group, Member
from penstock.testing import check_assignor


def test_members_get_the_partitions_of_their_zone() -> None:
    topics = ("measurements",)
    members = [Member(id=name, topics=topics, rack=zone) for name, zone in (("a", "zone-0"), ("b", "zone-1"))]
    shares = ByZone().assign(Group.of(members, {"measurements": 4})).partitions
    assert shares == {"a": [("measurements", 0), ("measurements", 2)], "b": [("measurements", 1), ("measurements", 3)]}


def test_partitions_of_a_zone_without_a_member_go_to_the_others() -> None:
    alone = Member(id="a", topics=("measurements",), rack="zone-0")
    assert len(ByZone().assign(Group.of([alone], {"measurements": 4})).partitions["a"]) == 4


def test_every_group_gets_a_valid_assignment() -> None:
    check_assignor(ByZone())
