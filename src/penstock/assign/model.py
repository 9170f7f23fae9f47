"""The input and the output of an assignor: a group and an assignment."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Protocol, Self, runtime_checkable

from penstock.core.records.record import TopicPartition
from penstock.core.text.plurals import counted
from penstock.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member of the group, as described by its JoinGroup request.

    ``owned`` are the partitions that it owned in ``generation``; ``user_data`` is what its assignor sends to the leader
    (the eager ``sticky`` sends both there). ``weight`` is its capacity, relative to other members. ``client`` is its
    client id, for people only; assignors ignore it.
    """

    id: str
    topics: tuple[str, ...] = ()
    static_id: str | None = None
    rack: str | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int | None = None
    weight: float = 1.0
    user_data: bytes | None = None
    client: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id:
            raise ConfigError(
                f"A member has the id {self.id!r}.", hint="Use a text that is not empty and unique within the group."
            )
        object.__setattr__(self, "topics", _names(self.id, self.topics))
        object.__setattr__(self, "owned", _tps(self.id, self.owned))
        if self.generation is not None and self.generation < 0:
            # The protocol writes -1 for "none".
            object.__setattr__(self, "generation", None)
        if not (isinstance(self.weight, int | float) and math.isfinite(self.weight) and self.weight > 0):
            raise ConfigError(
                f"Member {self.id!r} has the weight {self.weight!r}.",
                hint="Use a number above 0: a member with weight 2 gets twice as much as one with weight 1.",
            )


@dataclass(frozen=True, slots=True)
class Topic:
    """The number of partitions of a topic, and facts about each partition.

    ``racks`` are the racks of its replicas, ``lag`` its lag, ``rate`` the records that producers write per second,
    ``cost`` its work in any unit. Each of them is empty or has one entry per partition.
    """

    partitions: int
    racks: tuple[frozenset[str], ...] = ()
    lag: tuple[int, ...] = ()
    cost: tuple[float, ...] = ()
    rate: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.partitions, bool) or not isinstance(self.partitions, int) or self.partitions < 0:
            raise ConfigError(f"A topic has {self.partitions!r} partitions.", hint="Give their number, such as 12.")
        object.__setattr__(self, "racks", tuple(_racks(self.racks)))
        object.__setattr__(self, "lag", tuple(self.lag))
        object.__setattr__(self, "cost", tuple(self.cost))
        object.__setattr__(self, "rate", tuple(self.rate))
        figures_of = {"lag": self.lag, "cost": self.cost, "rate": self.rate}
        for name, known in {"racks": self.racks, **figures_of}.items():
            if known and len(known) != self.partitions:
                entries = counted(len(known), "entry", "entries")
                raise ConfigError(
                    f"A topic of {counted(self.partitions, 'partition')} has {entries} in {name}.",
                    hint="Give one for each partition, by its number, or none at all.",
                )
        for name, figures in figures_of.items():
            if any(not (math.isfinite(figure) and figure >= 0) for figure in figures):
                raise ConfigError(f"A topic's {name} holds a number below 0.", hint=f"A {name} is 0 or more.")


@dataclass(frozen=True, slots=True)
class Group:
    """The members, in the order of the coordinator's list, and the existing topics."""

    members: tuple[Member, ...]
    topics: Mapping[str, Topic] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", tuple(self.members))
        for name, topic in self.topics.items():
            if not isinstance(topic, Topic):
                raise ConfigError(f"Topic {name!r} is {topic!r}.", hint="Give a Topic, or use Group.of for numbers.")
        _refuse_twins("id", [member.id for member in self.members])
        _refuse_twins("static id", [member.static_id for member in self.members if member.static_id is not None])

    @classmethod
    def of(cls, members: Iterable[Member], topics: Mapping[str, Topic | int]) -> Self:
        """A group; a topic may be given as its number of partitions."""
        known = {name: Topic(topic) if isinstance(topic, int) else topic for name, topic in topics.items()}
        return cls(tuple(members), known)

    def topic_partitions(self) -> list[TopicPartition]:
        """Every partition to assign: those of existing topics to which at least one member subscribes."""
        wanted = set(chain.from_iterable(member.topics for member in self.members))
        existing = sorted(name for name in wanted if name in self.topics)
        return [tp for name in existing for tp in zip(repeat(name), range(self.topics[name].partitions))]


@dataclass(frozen=True, slots=True)
class Assignment:
    """The partitions of each member, sorted by topic and number.

    ``pending`` are partitions that another member must revoke first. In the cooperative protocol they are assigned to
    nobody until the next rebalance.
    """

    partitions: Mapping[str, Sequence[TopicPartition]]
    pending: Mapping[TopicPartition, str] = field(default_factory=dict)

    def owners(self) -> dict[TopicPartition, str]:
        return {tp: member for member, tps in self.partitions.items() for tp in tps}

    def settled(self) -> "Assignment":
        """The assignment after the pending partitions have been revoked and taken over."""
        if not self.pending:
            return self
        partitions = {member: list(tps) for member, tps in self.partitions.items()}
        for tp, member in self.pending.items():
            partitions[member].append(tp)
        return Assignment({member: sorted(tps) for member, tps in partitions.items()})


@runtime_checkable
class Assignor(Protocol):
    """Decides which member gets which partition: a name that all members of a group share, and a pure function.

    Any member may lead the group, so it must return the same assignment for the same group in every process. The
    assignment lists every member of the group. Every partition of ``group.topic_partitions()`` goes to exactly one
    member that subscribes to its topic (or is pending for one); nothing else is assigned.
    ``penstock.testing.check_assignor`` checks this.
    """

    @property
    def name(self) -> str: ...

    def assign(self, group: Group) -> Assignment: ...


def _names(member: str, topics: Iterable[str]) -> tuple[str, ...]:
    if isinstance(topics, str):
        raise ConfigError(f"The topics of member {member!r} are a single text.", hint=f"Give a list: [{topics!r}].")
    return tuple(dict.fromkeys(topics))


def _tps(member: str, owned: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    tps = tuple(owned)
    # Checked in bulk, because a large group owns a million partitions.
    if tps and not (set(map(type, tps)) <= {tuple} and set(map(len, tps)) == {2}):
        raise ConfigError(
            f"Member {member!r} owns something that is not a partition.", hint='Write each as ("orders", 0).'
        )
    return tps


def _racks(racks: Iterable[Iterable[str]]) -> Iterable[frozenset[str]]:
    for of_partition in racks:
        if isinstance(of_partition, str):
            raise ConfigError(
                f"The racks of a partition are the text {of_partition!r}.", hint=f"Give a set: {{{of_partition!r}}}."
            )
        yield frozenset(of_partition)


def _refuse_twins(what: str, names: list[str]) -> None:
    if len(set(names)) < len(names):
        twin = next(name for name in names if names.count(name) > 1)
        raise ConfigError(f"Two members have the {what} {twin!r}.", hint=f"Give each member of a group its own {what}.")
