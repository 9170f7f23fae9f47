"""The driver of a handler, with a cluster and a membership that the test holds in its hands."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from penstock import App
from penstock.core.progress.slices import Reached, Slice
from penstock.core.records.record import TopicPartition
from penstock.core.reports import events
from penstock.errors import ServerError
from penstock.spark.driver import handler_driver
from penstock.spark.driver.handler_driver import HandlerDriver
from penstock.spark.driver.slice_jobs import JobEnded
from penstock.spark.tasks.run_slices import DriverMembership
from penstock.spark.tasks.slice_result import SliceResult

TP: TopicPartition = ("orders", 0)


class OneTopic:
    """A cluster with one partition, whose log and commit the test sets."""

    brokers = "nowhere:1"

    def __init__(self) -> None:
        self.end = 200
        self.committed_at = 100
        self.topic_id = "first"
        self.is_away = False

    def require_topics(self, topics: Iterable[str]) -> dict[str, int]:
        return dict.fromkeys(topics, 1)

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        return dict.fromkeys(topics, self.topic_id)

    def start_offsets(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        if self.is_away:
            raise ServerError("The broker does not answer.")
        return dict.fromkeys(tps, 0)

    def stable_ends(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(tps, self.end)

    def commits(self, _group: str, tps: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, str]]:
        return dict.fromkeys(tps, (self.committed_at, ""))


class Member:
    """The driver's membership; a rebalance of others may refuse its commits."""

    def __init__(self, *, answered: Callable[[Mapping[TopicPartition, tuple[int, str]], str], None], **_: Any) -> None:
        self.answered = answered
        self.refuses = False
        self.committed: list[Mapping[TopicPartition, tuple[int, str]]] = []

    def poll(self) -> list[Any]:
        return []

    def metadata(self) -> bytes | None:
        return None

    def leave(self) -> None: ...

    def commit(self, commits: Mapping[TopicPartition, tuple[int, str]]) -> None:
        self.commit_now(commits)

    def commit_now(self, commits: Mapping[TopicPartition, tuple[int, str]]) -> None:
        if commits:
            self.committed += [] if self.refuses else [commits]
            self.answered(commits, "a rebalance is in progress" if self.refuses else "")


class Jobs:
    def __init__(self, ended: "SimpleQueue[JobEnded]") -> None:
        self.ended = ended
        self.started: list[Slice] = []

    def start(self, tasks: Sequence[Sequence[Slice]], _membership: DriverMembership) -> None:
        self.started += [each for task in tasks for each in task]

    def cancel(self) -> None: ...


class Bench:
    def __init__(self, patch: pytest.MonkeyPatch, root: Path, **options: Any) -> None:
        app = App("shop")
        app.consume("orders", **options)(lambda _value: None)
        self.members: list[Member] = []

        def make_member(*_: object, **given: Any) -> Member:
            self.members.append(Member(**given))
            return self.members[0]

        patch.setattr(handler_driver, "make_member", make_member)
        self.cluster = OneTopic()
        self.events: list[events.Event] = []
        cluster: Any = self.cluster
        self.driver = HandlerDriver(
            app.handlers[0], cluster, root=root, emit=self.events.append, until_caught_up=False, clock=lambda: 0.0
        )
        self.member = self.members[0]
        jobs: list[Jobs] = []

        def make_jobs(ended: "SimpleQueue[JobEnded]") -> Any:
            jobs.append(Jobs(ended))
            return jobs[0]

        self.driver.start(make_jobs, slots=1)
        self.jobs = jobs[0]

    def assign(self) -> None:
        self.driver._assigned([TP])

    def turn(self) -> list[int]:
        """One turn of the driver; returns where its slices have begun."""
        self.driver._turn()
        return [each.start for each in self.jobs.started]


@pytest.mark.parametrize("delivery", ["exactly-once", "at-most-once"])
def test_no_slice_begins_before_the_commit_that_its_task_reads_is_accepted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, delivery: str
) -> None:
    """Its transaction begins at the group's offset: with the old one it would skip what ``from_`` asks for."""
    bench = Bench(monkeypatch, tmp_path, delivery=delivery, from_="earliest")
    bench.member.refuses = True
    bench.assign()
    assert bench.turn() == []
    assert bench.turn() == []
    bench.member.refuses = False
    assert bench.turn() == [0]
    assert bench.member.committed == [{TP: (0, "")}]


def test_at_least_once_slices_do_not_wait_for_a_commit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bench = Bench(monkeypatch, tmp_path, from_="earliest")
    bench.member.refuses = True
    bench.assign()
    assert bench.turn() == [0]


def test_a_topic_that_was_recreated_is_known_as_such_also_if_the_cluster_does_not_answer_at_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = Bench(monkeypatch, tmp_path)
    bench.cluster.topic_id, bench.cluster.is_away = "second", True
    bench.assign()
    assert bench.turn() == []
    bench.cluster.is_away = False
    bench.driver._ask._away_until = 0.0
    assert bench.turn() == [0], "the commit belongs to the old log"


def test_a_stop_waits_for_the_slice_of_this_epoch_although_that_of_an_earlier_one_has_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The partition was lost and came back while its slice was running."""
    bench = Bench(monkeypatch, tmp_path)
    bench.assign()
    assert bench.turn() == [100]
    bench.driver._lost([TP])
    bench.assign()
    assert bench.turn() == [100, 100]
    earlier, now = bench.jobs.started
    bench.driver.stop("asked to")
    bench.jobs.ended.put(JobEnded([earlier], [SliceResult(TP, earlier.epoch, Reached(200, "", 200))]))
    bench.driver._turn()
    was_over = bench.driver.is_over
    assert not was_over
    bench.jobs.ended.put(JobEnded([now], [SliceResult(TP, now.epoch, Reached(200, "", 200))]))
    bench.driver._turn()
    assert bench.driver.is_over
    assert bench.member.committed == [{TP: (200, "")}]


def test_a_stop_waits_until_its_last_commit_is_accepted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A rebalance of others refuses commits until this member has joined again, so it must poll on."""
    bench = Bench(monkeypatch, tmp_path)
    bench.assign()
    bench.turn()
    (each,) = bench.jobs.started
    bench.driver.stop("asked to")
    bench.member.refuses = True
    bench.jobs.ended.put(JobEnded([each], [SliceResult(TP, each.epoch, Reached(200, "", 200))]))
    bench.driver._turn()
    was_over = bench.driver.is_over
    assert not was_over
    bench.member.refuses = False
    bench.driver._turn()
    assert bench.driver.is_over
    assert bench.member.committed == [{TP: (200, "")}]


def test_a_stop_gives_up_a_commit_that_is_refused_for_longer_than_drain_timeout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = Bench(monkeypatch, tmp_path, drain_timeout=0)
    bench.assign()
    bench.turn()
    (each,) = bench.jobs.started
    bench.driver.stop("asked to")
    bench.member.refuses = True
    bench.jobs.ended.put(JobEnded([each], [SliceResult(TP, each.epoch, Reached(200, "", 200))]))
    while not bench.driver.is_over:
        bench.driver._turn()
    assert bench.member.committed == []
    assert not [event for event in bench.events if isinstance(event, events.Error)], "no slice was cancelled"
