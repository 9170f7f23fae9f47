"""Where a run with ``--until-caught-up`` ends: the ends of the logs when it began."""

from collections.abc import Container, Mapping, Sequence

from penstock.app import Handler
from penstock.app.runs.replay_range import recreated_error
from penstock.core.progress.slices import PartitionSlices
from penstock.core.records.record import TopicPartition
from penstock.kafka import Cluster


class Targets:
    """The partitions of the handler's topics. Other members may own some, so their commits count too."""

    def __init__(self, cluster: Cluster, handler: Handler, sources: Sequence[TopicPartition]) -> None:
        self._cluster = cluster
        self._group = handler.group
        self._delayed = handler.delayed
        replay = handler.replay_range
        self._is_replay = replay is not None
        self._ends = dict(cluster.end_offsets(sources) if replay is None else replay.ends)
        self._elsewhere: dict[TopicPartition, int] = {}

    def ask_others(self, owned: Container[TopicPartition]) -> None:
        """Ask how far the other members are."""
        others = [tp for tp in self._ends if tp not in owned]
        self._elsewhere = self._cluster.committed(self._group, others) if others else {}

    def lower(self, topic: str) -> None:
        """A topic was recreated: its log may be shorter now. Raise if this is a replay of the old one."""
        if self._is_replay:
            raise recreated_error(topic)
        for tp, end in self._cluster.end_offsets([tp for tp in self._ends if tp[0] == topic]).items():
            self._ends[tp] = min(self._ends[tp], end)

    def are_reached(self, partitions: Mapping[TopicPartition, PartitionSlices], now: float) -> bool:
        """Whether all partitions have reached their targets, and no record of a retry topic is due."""

        def position(tp: TopicPartition) -> int:
            return partitions[tp].position if tp in partitions else self._elsewhere.get(tp, -1)

        retries = [each for tp, each in partitions.items() if tp[0] in self._delayed]
        if any(each.running or each.wants_slice(now) for each in retries):
            return False
        return all(position(tp) >= end for tp, end in self._ends.items())
