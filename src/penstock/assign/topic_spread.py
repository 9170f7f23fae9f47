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
            for tp in member.owned:
                if tp[0] in member.topics:
                    keeper.setdefault(tp, seat)
        ownership: list[list[TopicPartition]] = [[] for _ in members]
        for topic, seats in readers.items():
            tps = [(topic, number) for number in range(group.topics[topic].partitions)]
            _spread(tps, seats, keeper, ownership)
        by_id = {member.id: hand for member, hand in zip(members, ownership, strict=True)}
        return Assignment({member.id: by_id[member.id] for member in group.members})


def _spread(
    tps: list[TopicPartition],
    seats: Sequence[int],
    keeper: dict[TopicPartition, int],
    ownership: list[list[TopicPartition]],
) -> None:
    kept: dict[int, list[TopicPartition]] = {seat: [] for seat in seats}
    for tp in tps:
        if tp in keeper:
            kept[keeper[tp]].append(tp)
    least, extra = divmod(len(tps), len(seats))
    by_need = sorted(seats, key=lambda seat: (len(ownership[seat]), -len(kept[seat]), seat))
    quota = {seat: least + (at < extra) for at, seat in enumerate(by_need)}
    stays = {tp for seat in seats for tp in kept[seat][: quota[seat]]}
    room = iter([seat for seat in by_need for _ in range(quota[seat] - len(kept[seat]))])
    for tp in tps:
        ownership[keeper[tp] if tp in stays else next(room)].append(tp)
