"""``topic-spread``: every topic evenly over its subscribers, so that no member gets most of a busy topic."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from penstock.assign.model import Assignment, Group
from penstock.assign.partition_index import assignable, in_member_order, subscribers
from penstock.core.records.record import TopicPartition


@dataclass(frozen=True)
class TopicSpread:
    """The subscribers of a topic get equally many of its partitions, or one more.

    The one more goes to those that have the fewest in all so far; where all subscribe alike, the totals differ by one
    at most too. Within that, members keep what they had.
    """

    name: ClassVar[str] = "topic-spread"

    def assign(self, group: Group) -> Assignment:
        members = in_member_order(group.members)
        readers = subscribers(members, assignable(group))
        keeper: dict[TopicPartition, int] = {}
        for seat, member in enumerate(members):
            for place in member.owned:
                if place[0] in member.topics:
                    keeper.setdefault(place, seat)
        hands: list[list[TopicPartition]] = [[] for _ in members]
        for topic, seats in readers.items():
            places = [(topic, number) for number in range(group.topics[topic].partitions)]
            _spread(places, seats, keeper, hands)
        by_id = {member.id: hand for member, hand in zip(members, hands, strict=True)}
        return Assignment({member.id: by_id[member.id] for member in group.members})


def _spread(
    places: list[TopicPartition],
    seats: Sequence[int],
    keeper: dict[TopicPartition, int],
    hands: list[list[TopicPartition]],
) -> None:
    kept: dict[int, list[TopicPartition]] = {seat: [] for seat in seats}
    for place in places:
        if place in keeper:
            kept[keeper[place]].append(place)
    least, extra = divmod(len(places), len(seats))
    by_need = sorted(seats, key=lambda seat: (len(hands[seat]), -len(kept[seat]), seat))
    quota = {seat: least + (at < extra) for at, seat in enumerate(by_need)}
    stays = {place for seat in seats for place in kept[seat][: quota[seat]]}
    room = iter([seat for seat in by_need for _ in range(quota[seat] - len(kept[seat]))])
    for place in places:
        hands[keeper[place] if place in stays else next(room)].append(place)
