"""Assignors: pure functions that decide which member of a group gets which partition."""

from penstock.assign.assignment_check import faults
from penstock.assign.builtin_assignors import ASSIGNORS, assignor_named
from penstock.assign.consistent_hash import ConsistentHash
from penstock.assign.lag_balanced import LagBalanced
from penstock.assign.model import Assignment, Assignor, Group, Member, Topic
from penstock.assign.rack_near import RackNear
from penstock.assign.range_assignor import Range
from penstock.assign.roundrobin import RoundRobin
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
