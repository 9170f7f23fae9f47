"""When finished records are committed: by time, by count, after each record, by hand."""

import threading
from dataclasses import replace
from time import monotonic

from kafka_helpers import QUICK, WAIT_SECONDS, MakeTopic, Running, catch_up, committed, of_kind, produce, wait_for
from penstock import App, Record
from penstock.core.reports import events
from penstock.kafka import Cluster
from penstock.kafka.admin.consumer_groups import GroupDescription, Groups
from penstock.kafka.client.kafka_python_settings import kafka_python_config
from penstock.kafka.group.coordinator import CoordinatorConnection, CoordinatorNetwork, Identity
from penstock.kafka.group.subscription_format import PenstockData, write_subscription


def test_a_count_commits_before_the_time_comes(brokers: str, group: str, make_topic: MakeTopic) -> None:
    source = make_topic()
    produce(brokers, source, range(100))
    app = App(group)

    @app.consume(source, commit_every="1h", commit_after=100)
    def handle(value: int) -> None: ...

    engine = Running(app, brokers)
    wait_for(lambda: [e for e in of_kind(engine.events, events.Committed) if e.offset == 100], "the commit")
    engine.stop()


def test_with_commit_record_each_one_is_committed_as_it_is_finished(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, go_on = make_topic(), threading.Semaphore(0)
    produce(brokers, source, range(3))
    app = App(group)

    @app.consume(source, commit="record", commit_every="1h")
    def handle(value: int) -> None:
        go_on.acquire()

    engine = Running(app, brokers)
    for done in (1, 2, 3):
        go_on.release()
        wait_for(lambda: committed(cluster, group, source).get(0) == done, f"record {done} to be committed")  # noqa: B023
    engine.stop()


class BareMember:
    """A member that joins when the test says so, and sends no heartbeats. Others wait for it until its session ends."""

    def __init__(self, line: CoordinatorConnection, group: str, topic: str) -> None:
        self._line = line
        self._identity = Identity(group, "", -1, None)
        subscription = write_subscription(
            [topic],
            owned=(),
            generation=-1,
            rack=None,
            user_data=None,
            penstock_data=PenstockData(("cooperative-sticky",)),
        )
        self._protocols = [("cooperative-sticky", subscription)]

    def join(self) -> None:
        """Return when all members have joined. At generation -1 the broker has only assigned a member id."""
        while True:
            joined = self._line.join(
                self._identity, self._protocols, session_seconds=90, rebalance_seconds=WAIT_SECONDS, reason="a test"
            )
            self._identity = replace(self._identity, member_id=joined.member_id, generation=joined.generation)
            if joined.generation != -1:
                return

    def sync(self) -> None:
        self._line.sync(self._identity, "cooperative-sticky", {}, seconds=WAIT_SECONDS)

    def leave(self) -> None:
        self._line.leave(self._identity, "a test")


def test_with_commit_record_commits_do_not_wait_until_all_members_have_rejoined(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, go_on = make_topic(), threading.Semaphore(0)
    produce(brokers, source, range(2_000))
    app = App(group)

    @app.consume(source, commit="record", commit_every="1h", settings=QUICK)
    def handle(value: int) -> None:
        go_on.acquire()

    def state() -> str:
        found = Groups(cluster).describe([group])[group]
        assert isinstance(found, GroupDescription)
        return found.state

    network, engine, done = CoordinatorNetwork(kafka_python_config(brokers, {})), Running(app, brokers), 0
    try:
        wait_for(lambda: of_kind(engine.events, events.Assigned), "an assignment")
        silent, newcomer = (BareMember(network.connect(group), group, source) for _ in range(2))
        silent.join()
        silent.sync()
        joining = threading.Thread(target=newcomer.join)
        joining.start()
        wait_for(lambda: state() == "PreparingRebalance", "the rebalance to begin")
        # The engine's member rejoins at its next heartbeat, after about 300 ms, and then waits for the silent one.
        began = monotonic()
        while monotonic() < began + 3:
            done += 1
            go_on.release()
            wait_for(lambda: committed(cluster, group, source).get(0) == done, f"record {done} to be committed")  # noqa: B023
            assert state() == "PreparingRebalance", f"record {done} was committed only after the rebalance"
        silent.leave()
        joining.join()
        newcomer.leave()
    finally:
        go_on.release(2_000)
        network.close()
        engine.stop()


def test_with_commit_manual_a_record_is_finished_when_it_is_acknowledged(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, kept = make_topic(), list[Record]()
    produce(brokers, source, range(10))
    app = App(group)

    @app.consume(source, commit="manual", commit_every="50ms", order="none", concurrency=1, drain_timeout="100ms")
    def handle(record: Record) -> None:
        kept.append(record)
        if record.offset < 4:
            record.ack()

    engine = Running(app, brokers)
    wait_for(lambda: len(kept) == 10, "all to be handled")
    wait_for(lambda: committed(cluster, group, source).get(0) == 4, "the acknowledged ones to be committed")
    for record in kept:  # on another thread, long after the handler has returned
        if record.offset not in (6, 8):
            record.ack()
    wait_for(lambda: committed(cluster, group, source).get(0) == 6, "the commit point to reach the next gap")
    engine.stop()

    again: list[int] = []
    after = App(group)

    @after.consume(source)
    def repeat(record: Record) -> None:
        again.append(record.offset)

    catch_up(after, brokers)
    assert again == [6, 8], "only records without an acknowledgement are delivered again"
