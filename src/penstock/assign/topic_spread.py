"""``topic-spread``: balances every topic over its subscribers, so that no member gets most of a busy topic."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from penstock.assign.model import Assignment, Group
from penstock.assign.partition_index import assignable, in_member_order, subscribers
from penstock.core.records.record import TopicPartition


@dataclass(frozen=True)
class TopicSpread:
    """The subscribers of a topic get equal numbers of its partitions, some of them one more.

    The additional partitions go to the members with the fewest partitions so far. So if all members subscribe to the
    same topics, their totals also differ by at most one. Within these limits, members keep what they owned.
    """

    name: ClassVar[str] = "topic-spread"

    def assign(self, group: Group) -> Assignment:
        members = in_member_order(group.members)
        readers = subscribers(members, assignable(group))
        last_owner: dict[TopicPartition, int] = {}
        for index, member in enumerate(members):
            for tp in member.owned:
                if tp[0] in member.topics:
                    last_owner.setdefault(tp, index)
        ownership: list[list[TopicPartition]] = [[] for _ in members]
        for topic, indexes in readers.items():
            tps = [(topic, number) for number in range(group.topics[topic].partitions)]
            _spread(tps, indexes, last_owner, ownership)
        by_id = {member.id: tps for member, tps in zip(members, ownership, strict=True)}
        return Assignment({member.id: by_id[member.id] for member in group.members})


def _spread(
    tps: list[TopicPartition],
    indexes: Sequence[int],
    last_owner: dict[TopicPartition, int],
    ownership: list[list[TopicPartition]],
) -> None:
    kept: dict[int, list[TopicPartition]] = {index: [] for index in indexes}
    for tp in tps:
        if tp in last_owner:
            kept[last_owner[tp]].append(tp)
    least, extra = divmod(len(tps), len(indexes))
    by_need = sorted(indexes, key=lambda index: (len(ownership[index]), -len(kept[index]), index))
    quota = {index: least + (at < extra) for at, index in enumerate(by_need)}
    stays = {tp for index in indexes for tp in kept[index][: quota[index]]}
    room = iter([index for index in by_need for _ in range(quota[index] - len(kept[index]))])
    for tp in tps:
        ownership[last_owner[tp] if tp in stays else next(room)].append(tp)
