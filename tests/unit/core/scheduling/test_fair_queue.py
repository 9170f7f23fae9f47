"""Fair turns of tenants, and priorities, without an engine."""

from collections import Counter, deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.progress.tracker import Tracker
from penstock.core.scheduling.fair_queue import Fairness, FairQueue
from penstock.core.scheduling.lanes import Epoch, Lane, LaneRun

EPOCH = Epoch(("t", 0), 1, Tracker(0), None)


@dataclass(frozen=True)
class Job:
    tenant: Hashable
    priority: int = 0
    number: int = 0


@dataclass
class Queue:
    """A FairQueue with one record in each lane, as a worker that takes one record after the other uses it."""

    weights: dict[Hashable, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.fair = FairQueue(
            Fairness(
                lambda job: job.tenant,
                lambda job: job.priority,
                lambda tenant: self.weights.get(tenant, 1.0),
            )
        )

    def add(self, *jobs: Job) -> None:
        for job in jobs:
            self.fair.append(Lane(EPOCH, job, waiting=deque([job])))

    def take(self) -> Job:
        lane = self.fair.popleft()
        job: Job = lane.waiting.popleft()
        self.fair.settle([LaneRun(lane, [job])])
        return job

    def take_all(self, count: int) -> list[Job]:
        return [self.take() for _ in range(count)]


def many(tenant: Hashable, count: int, priority: int = 0) -> Iterable[Job]:
    return (Job(tenant, priority, number) for number in range(count))


def test_a_tenant_with_few_records_waits_for_its_turn_only_and_not_for_a_flood() -> None:
    queue = Queue()
    queue.add(*many("flood", 1_000))
    queue.take_all(100)
    queue.add(*many("small", 10))
    assert Counter(job.tenant for job in queue.take_all(20)) == {"small": 10, "flood": 10}


def test_shares_follow_the_weights() -> None:
    queue = Queue({"gold": 3.0, "free": 0.5})
    queue.add(*many("free", 100), *many("gold", 100), *many("other", 100))
    assert Counter(job.tenant for job in queue.take_all(90)) == {"gold": 60, "other": 20, "free": 10}


def test_a_pause_saves_up_no_turns() -> None:
    queue = Queue()
    queue.add(*many("busy", 1_000), Job("late"))
    queue.take_all(500)
    queue.add(*many("late", 400))
    assert Counter(job.tenant for job in queue.take_all(100)) == {"busy": 50, "late": 50}


def test_new_tenants_do_not_starve_one_that_waits() -> None:
    """Each of many tenants has one record, and each is served at its first turn."""
    queue = Queue()
    queue.add(*many("old", 50))
    for number in range(100):
        queue.add(Job(f"new {number}"))
        queue.take()
        queue.add(Job(f"newer {number}"))
        queue.take()
    # It is served once in each round, and each round has one more tenant than the last.
    assert sum(1 for lane in queue.fair if lane.waiting[0].tenant == "old") <= 31


def test_large_runs_are_charged_by_record() -> None:
    queue = Queue()
    records = [Job("flood", number=number) for number in range(100)]
    lane = Lane(EPOCH, "flood", waiting=deque(records))
    queue.fair.append(lane)
    queue.add(*many("small", 150))
    while queue.fair.popleft() is not lane:
        queue.fair.settle([LaneRun(lane, [])])
    lane.waiting.clear()
    queue.fair.settle([LaneRun(lane, records)])
    queue.add(*many("flood", 10))
    assert {job.tenant for job in queue.take_all(90)} == {"small"}


def test_a_parked_lane_is_charged_nothing() -> None:
    queue = Queue()
    queue.add(*many("parked", 50), *many("other", 2))
    for _ in range(51):
        queue.fair.popleft()
    queue.fair.settle([])
    queue.add(*many("parked", 10), *many("other", 3))
    assert Counter(job.tenant for job in queue.take_all(4)) == {"parked": 2, "other": 2}


def test_higher_priorities_run_first_and_every_tenth_record_is_the_oldest_of_the_lower_ones() -> None:
    queue = Queue()
    queue.add(*many("t", 10, -1), *many("t", 10, 0), *many("t", 100, 1))
    found = [job.priority for job in queue.take_all(100)]
    assert found[:9] == [1] * 9
    assert Counter(found) == {1: 90, -1: 10}
    assert [n for n, priority in enumerate(found) if priority == -1] == list(range(9, 100, 10))


def test_each_tenant_has_its_own_priorities() -> None:
    queue = Queue()
    queue.add(*many("loud", 100, 9), *many("quiet", 100, -9))
    assert Counter(job.tenant for job in queue.take_all(40)) == {"loud": 20, "quiet": 20}


def test_a_million_tenants_leave_no_state() -> None:
    queue = Queue()
    queue.add(*many("flood", 10_000))
    known = 0
    for number in range(5_000):
        queue.add(Job(number))
        queue.take_all(2)
        known = max(known, queue.fair.known_tenants)
    assert known < 5
    queue.take_all(len(queue.fair))
    assert queue.fair.known_tenants == 0


@settings(max_examples=60)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from("abcd"), st.integers(-2, 2), st.integers(1, 5)),
            st.integers(1, 8),
        ),
        max_size=60,
    )
)
def test_each_lane_is_taken_once_and_no_tenant_waits_for_more_than_its_turn(steps: list[object]) -> None:
    queue, waiting, number = Queue(), Counter[str](), 0
    passed: Counter[str] = Counter()  # records of others since a tenant with records was served last
    left: set[Job] = set()
    for step in steps:
        if isinstance(step, tuple):
            for _ in range(step[2]):
                number += 1
                job = Job(step[0], step[1], number)
                if not waiting[step[0]]:
                    passed[step[0]] = 0
                waiting[step[0]] += 1
                left.add(job)
                queue.add(job)
            continue
        assert isinstance(step, int)
        for _ in range(min(step, len(queue.fair))):
            job = queue.take()
            left.remove(job)
            waiting[str(job.tenant)] -= 1
            passed[str(job.tenant)] = 0
            for tenant in waiting:
                if waiting[tenant] and tenant != job.tenant:
                    passed[tenant] += 1
                    # Each of the three others has its record of this round, and one of the next at most.
                    assert passed[tenant] <= 6
    assert len(queue.fair) == len(left)
    assert {lane.waiting[0] for lane in queue.fair} == left
