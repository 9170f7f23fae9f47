"""Who gets which partition: pure functions from a group to an assignment."""

from penstock.assign.catalogue import ASSIGNORS, assignor_named
from penstock.assign.checking import faults
from penstock.assign.consistent_hash import ConsistentHash
from penstock.assign.lag_balanced import LagBalanced
from penstock.assign.model import Assignment, Assignor, Group, Member, Topic
from penstock.assign.rack_near import RackNear
from penstock.assign.ranges import Range
from penstock.assign.round_robin import RoundRobin
from penstock.assign.sticky import CooperativeSticky, Sticky
from penstock.assign.topic_spread import TopicSpread

__all__ = [
    "ASSIGNORS",
    "Assignment",
    "Assignor",
    "ConsistentHash",
    "CooperativeSticky",
    "Group",
    "LagBalanced",
    "Member",
    "RackNear",
    "Range",
    "RoundRobin",
    "Sticky",
    "Topic",
    "TopicSpread",
    "assignor_named",
    "faults",
]
