"""kafka-python's assignors on one group: run by benchmarks/assignors.py, with an interpreter that has kafka-python.

Prints the best seconds of a fresh assignment, and after one member left.
"""

import sys
import time
from types import SimpleNamespace

from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

KINDS = {
    kind.name: kind
    for kind in (
        RangePartitionAssignor,
        RoundRobinPartitionAssignor,
        StickyPartitionAssignor,
        CooperativeStickyAssignor,
    )
}


def main(name: str, sizes: list[int], kind: str, seconds: float) -> None:
    members, topics, partitions = sizes
    names = [f"topic-{topic:04}" for topic in range(topics)]
    halves = (names[0::2], names[1::2]) if kind == "mixed" else (names, names)
    numbers = set(range(partitions))
    cluster = SimpleNamespace(partitions_for_topic=lambda _: numbers, topics=lambda: set(names))
    fresh, leaving = [], []
    end = time.perf_counter() + seconds
    while not leaving or time.perf_counter() < end:
        own = {f"consumer-{number:05}": (KINDS[name](), halves[number % 2]) for number in range(members)}
        start = time.perf_counter()
        given = KINDS[name]().assign(cluster, joined(own))
        fresh.append(time.perf_counter() - start)
        for member, (assignor, _) in own.items():
            assignor.on_assignment(given[member], 1)
        stayed = joined(own)[:-1]
        start = time.perf_counter()
        KINDS[name]().assign(cluster, stayed)
        leaving.append(time.perf_counter() - start)
    print(min(fresh), min(leaving))


def joined(own: dict) -> list[SimpleNamespace]:
    return [
        SimpleNamespace(member_id=member, group_instance_id=None, metadata=assignor.metadata(topics))
        for member, (assignor, topics) in own.items()
    ]


if __name__ == "__main__":
    main(sys.argv[1], [int(size) for size in sys.argv[2:5]], sys.argv[5], float(sys.argv[6]))
