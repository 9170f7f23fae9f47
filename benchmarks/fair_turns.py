"""Fair turns on one partition: a tenant with many records in front of 99 with 100 each.

It runs the engine's rules (``core``) against simulated workers that take 5 ms for each record, 32 at once: no Kafka, no
real waiting, so other programs do not disturb it, and all runs have the same result. The throughput says whether the
rules leave workers idle, not what they cost. Run it with: python benchmarks/fair_turns.py [RECORDS OF THE FLOOD].
It takes half a minute of processor time for 100,000, and writes benchmarks/fair_turns.svg.
"""

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from plots import Line, Panel, write_svg

from penstock.core.failures.outcome import DONE
from penstock.core.scheduling.dispatch import Dispatch
from penstock.core.scheduling.fair_queue import Fairness
from penstock.core.scheduling.in_flight import HandedOver, InFlight
from penstock.core.scheduling.lanes import LaneRun, Order

TP = ("orders", 0)
WORKERS, SECONDS, MAX_IN_FLIGHT = 32, 0.005, 10_000


class Job(NamedTuple):
    offset: int
    key: bytes
    tenant: int  # 0 is the flood


@dataclass
class Ran:
    waits: list[float]  # of the 99 tenants, sorted
    seconds: float
    records: int
    most_in_flight: int
    largest_map: int
    stalled: float  # the longest time without a new commit point

    def p99(self) -> float:
        return self.waits[len(self.waits) * 99 // 100]

    def throughput(self) -> float:
        return self.records / self.seconds


def small_tenants(seed: int = 1) -> list[int]:
    """The 9,900 records of the 99 tenants, mixed."""
    tenants = [tenant for tenant in range(1, 100) for _ in range(100)]
    random.Random(seed).shuffle(tenants)  # noqa: S311 - not for secrets
    return tenants


def flood_first(flood: int) -> list[int]:
    return [0] * flood + small_tenants()


def mixed(flood: int) -> list[int]:
    tenants = [0] * flood + small_tenants()
    random.Random(2).shuffle(tenants)  # noqa: S311 - not for secrets
    return tenants


def run(  # noqa: C901 - one simulation
    log: list[int], *, fair: bool, order: Order = "key", max_in_flight: int = MAX_IN_FLIGHT
) -> Ran:
    fairness = Fairness(attrgetter("tenant")) if fair else None
    dispatch = Dispatch(
        order=order,
        concurrency=WORKERS,
        in_flight=InFlight(max_in_flight, 10_000 * max_in_flight),
        dead_letter_of=None,
        random=random.random,
        fairness=fairness,
    )
    dispatch.assign(TP, 0)
    handed_over, position, now, numbers = HandedOver(), 0, 0.0, iter(range(10**9))
    ends: list[tuple[float, int, list[LaneRun]]] = []
    waits: list[float] = []
    most = largest_map = 0
    point, moved, stalled, next_look = 0, 0.0, 0.0, 0.0
    while True:
        room = min(dispatch.in_flight.room(handed_over), len(log) - position)
        if room > 0:
            jobs = [Job(at, b"%d:%d" % (log[at], at), log[at]) for at in range(position, position + room)]
            position += room
            handed_over.add(room, ())
            dispatch.deliver(TP, jobs)
        for bundle in dispatch.take(now, 1):
            heappush(ends, (now + SECONDS, next(numbers), bundle))
        if not ends:
            break
        now = ends[0][0]
        while ends and ends[0][0] <= now:
            bundle = heappop(ends)[2]
            dispatch.release()
            for each in bundle:
                waits.extend(now for job in each.records if job.tenant)
                dispatch.report([(each, [DONE] * len(each.records), True)], now)
        if now >= next_look:
            next_look = now + 0.1
            (epoch,) = dispatch.epochs
            most = max(most, epoch.tracker.unfinished)
            new = epoch.tracker.commit_point
            if new is not None and new > point:
                point, moved = new, now
            stalled = max(stalled, now - moved)
            commit = dispatch.commits().get(TP)
            if commit is not None:
                largest_map = max(largest_map, len(commit[1]))
                dispatch.committed(TP, commit)
    if dispatch.epochs[0].tracker.commit_point != len(log):
        raise RuntimeError("a record was not handled")
    return Ran(sorted(waits), now, len(log), most, largest_map, stalled)


def rows(flood: int) -> Iterator[tuple[str, str, Ran]]:
    """The names of each case in the plot (none: it is not there) and in the table."""
    alone, first = small_tenants(), flood_first(flood)
    yield "alone", "without a flood", run(alone, fair=True)
    yield "no order", f"flood of {flood:,} in front, order none", run(first, fair=False, order="none")
    yield "by key", "flood in front, order by key", run(first, fair=False)
    yield "fair_by", "flood in front, fair_by", run(first, fair=True)
    if flood > MAX_IN_FLIGHT:
        wide = 2 * flood
        yield (
            "fair, wide",
            f"flood in front, fair_by, max_in_flight={wide:,}",
            run(first, fair=True, max_in_flight=wide),
        )
    yield "", "flood mixed in, order by key", run(mixed(flood), fair=False)
    yield "", "flood mixed in, fair_by", run(mixed(flood), fair=True)


def main(flood: int) -> None:
    print("| case | p99 of the 99 | records/s | most in flight | largest map | longest without a commit |")
    print("|---|---|---|---|---|---|")
    lines = []
    for short, name, ran in rows(flood):
        print(
            f"| {name} | {ran.p99():.2f} s | {ran.throughput():,.0f} | {ran.most_in_flight:,} | {ran.largest_map:,} B "
            f"| {ran.stalled:.1f} s |",
            flush=True,
        )
        if short:
            waits = ran.waits
            lines.append(Line(short, [(part, waits[(len(waits) - 1) * part // 100]) for part in range(101)]))
    title = f"99 tenants with 100 records each, behind a flood of {flood:,} on one partition"
    panel = Panel("wait of the records of the 99, s", lines)
    write_svg(Path(__file__).with_suffix(".svg"), title, [panel], x="percentile")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
