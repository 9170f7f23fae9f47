"""Random groups over several generations: members join, leave and miss generations; topics and racks change."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from uuid import UUID

from penstock.assign import Assignment, Assignor, Group, Member, Topic
from penstock.assign.sticky.user_data import write_cooperative, write_sticky

_RACKS = ("a", "b", "c", "d")
# Pairs of texts with the same hash in Java, and texts that Python and Java sort differently.
_ODD_IDS = ("Aa", "BB", "AaAa", "BBBB", "AaBB", "\uff5a", "\U0001f600", "é", "0", "Z", "a b")


@dataclass(frozen=True)
class Shape:
    """The sizes of groups, and how often they are unusual."""

    members: int = 8
    topics: int = 5
    partitions: int = 7
    generations: int = 6


class Chain:
    """One group through several generations, under one assignor."""

    def __init__(self, random: Random, assignor: Assignor, shape: Shape) -> None:
        self._random = random
        self._assignor = assignor
        self._shape = shape
        self._with_racks = random.random() < 0.4
        self._alike = random.random() < 0.5
        self._odd = random.random() < 0.15
        self._generation = random.randrange(20)
        self._names = [f"t{number}" for number in range(random.randint(1, shape.topics))]
        self._topics = {name: self._topic() for name in self._names}
        self._members = _unlike([self._newcomer() for _ in range(random.randint(1, shape.members))])

    def groups(self) -> Iterator[Group]:
        for _ in range(self._random.randint(1, self._shape.generations)):
            self._random.shuffle(self._members)
            group = Group(tuple(self._members), dict(self._topics))
            yield group
            self._live_on(self._assignor.assign(group))

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _topic(self) -> Topic:
        count = self._random.randint(0 if self._chance(0.05) else 1, self._shape.partitions)
        if not self._with_racks or self._chance(0.1):
            return Topic(count)
        known = _RACKS[: self._random.randint(1, len(_RACKS))]
        replicas = self._random.randint(0 if self._odd else 1, len(known))
        return Topic(count, racks=tuple(frozenset(self._random.sample(known, replicas)) for _ in range(count)))

    def _subscription(self) -> tuple[str, ...]:
        names = [*self._names, "missing"] if self._chance(0.1) else list(self._names)
        if self._alike and not self._chance(0.02):
            return tuple(self._names)
        least = 0 if self._chance(0.05) else 1
        return tuple(self._random.sample(names, self._random.randint(least, len(names))))

    def _newcomer(self) -> Member:
        number = UUID(int=self._random.getrandbits(128))
        kinds = (f"consumer-{self._random.randrange(30)}-{number}", f"c{self._random.randrange(100)}", str(number))
        name = self._random.choice(_ODD_IDS if self._chance(0.05) else kinds)
        return Member(
            id=name,
            topics=self._subscription(),
            static_id=f"s{self._random.randrange(100)}-{name}" if self._chance(0.2) else None,
            rack=self._rack(),
        )

    def _rack(self) -> str | None:
        if not self._with_racks or self._chance(0.1):
            return None
        return self._random.choice((*_RACKS, "elsewhere") if self._odd else _RACKS)

    def _live_on(self, assignment: Assignment) -> None:
        self._generation += 1
        self._members = [self._remembering(member, assignment) for member in self._members]
        for change in self._random.sample(self._changes(), self._random.choice((0, 1, 1, 1, 2, 3))):
            change()

    def _remembering(self, member: Member, assignment: Assignment) -> Member:
        """Most members send their last assignment, some an older one, some none."""
        if self._chance(0.05):
            return member
        if self._chance(0.03):
            return replace(member, owned=(), generation=None, user_data=None)
        owned = tuple(assignment.partitions[member.id])
        generation = None if self._chance(0.05) else self._generation
        written = write_cooperative(self._generation)
        if self._assignor.name == "sticky":
            written = write_sticky(owned, self._generation if self._chance(0.97) else self._random.randrange(30))
            owned = ()
        data: bytes | None = written
        if self._odd and self._chance(0.2):
            # Truncated user data: the oldest members write no generation, and damaged data can contain anything.
            data = self._random.choice((written[:-4], written[: self._random.randrange(len(written))], b"", None))
        return replace(member, owned=owned, generation=generation, user_data=data)

    def _changes(self) -> list[Callable[[], None]]:
        changes = [
            self._join,
            self._join,
            self._leave,
            self._leave,
            self._grow,
            self._resubscribe,
            self._found,
            self._drop,
        ]
        if self._with_racks:
            changes.append(self._move_racks)
        if self._odd:
            changes += [self._lie, self._shrink]
        return changes

    def _join(self) -> None:
        self._members = _unlike([*self._members, *(self._newcomer() for _ in range(self._random.randint(1, 3)))])

    def _leave(self) -> None:
        gone = self._random.sample(self._members, min(len(self._members) - 1, self._random.randint(1, 3)))
        self._members = [member for member in self._members if member not in gone]

    def _grow(self) -> None:
        name = self._random.choice(list(self._names))
        topic = self._topics.get(name, Topic(0))
        more = self._topic()
        racks = (*topic.racks, *more.racks) if len(topic.racks) == topic.partitions and more.racks else ()
        self._topics[name] = Topic(topic.partitions + more.partitions, racks=racks)

    def _shrink(self) -> None:
        """A topic is recreated with fewer partitions, and members still claim the old ones."""
        name = self._random.choice(list(self._names))
        if name in self._topics:
            self._topics[name] = Topic(self._topics[name].partitions // 2)

    def _resubscribe(self) -> None:
        at = self._random.randrange(len(self._members))
        self._members[at] = replace(self._members[at], topics=self._subscription())

    def _found(self) -> None:
        name = f"n{len(self._names)}"
        self._names.append(name)
        self._topics[name] = self._topic()
        self._members = [
            replace(member, topics=(*member.topics, name)) if self._alike or self._chance(0.5) else member
            for member in self._members
        ]

    def _drop(self) -> None:
        self._topics.pop(self._random.choice(list(self._names)), None)

    def _move_racks(self) -> None:
        self._topics = {name: replace(topic, racks=self._other_racks(topic)) for name, topic in self._topics.items()}
        self._members = [replace(member, rack=self._rack()) for member in self._members]

    def _other_racks(self, topic: Topic) -> tuple[frozenset[str], ...]:
        replicas = self._random.randint(1, len(_RACKS))
        return tuple(frozenset(self._random.sample(_RACKS, replicas)) for _ in range(topic.partitions))

    def _lie(self) -> None:
        """A member that claims partitions of others."""
        at = self._random.randrange(len(self._members))
        tps = Group(tuple(self._members), dict(self._topics)).topic_partitions()
        claimed = tuple(self._random.sample(tps, min(len(tps), self._random.randint(1, 6))))
        generation = self._random.choice((None, self._generation, self._generation - 1))
        data = write_sticky(claimed, self._generation - self._random.randrange(3))
        owned = () if self._assignor.name == "sticky" else claimed
        self._members[at] = replace(self._members[at], owned=owned, generation=generation, user_data=data)


def _unlike(members: list[Member]) -> list[Member]:
    """Ids are random, and each is unique in its group."""
    return list({member.id: member for member in members}.values())
