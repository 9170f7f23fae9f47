"""The assignors that come with Penstock, by name."""

from difflib import get_close_matches

from penstock.assign.consistent_hash import ConsistentHash
from penstock.assign.lag_balanced import LagBalanced
from penstock.assign.model import Assignor
from penstock.assign.rack_near import RackNear
from penstock.assign.range_assignor import Range
from penstock.assign.roundrobin import RoundRobin
from penstock.assign.sticky import CooperativeSticky, Sticky
from penstock.assign.topic_spread import TopicSpread
from penstock.errors import ConfigError

_ALL: tuple[Assignor, ...] = (
    Range(),
    RoundRobin(),
    Sticky(),
    CooperativeSticky(),
    TopicSpread(),
    ConsistentHash(),
    RackNear(),
    LagBalanced(),
)
ASSIGNORS: dict[str, Assignor] = {assignor.name: assignor for assignor in _ALL}


def assignor_named(name: str) -> Assignor:
    if name not in ASSIGNORS:
        near = get_close_matches(name, ASSIGNORS, n=1)
        meant = f"Did you mean {near[0]!r}? " if near else ""
        raise ConfigError(f"There is no assignor named {name!r}.", hint=f"{meant}Use one of {', '.join(ASSIGNORS)}.")
    return ASSIGNORS[name]
