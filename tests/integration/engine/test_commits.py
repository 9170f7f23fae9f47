"""When finished work is committed: by time, by count, after each record, by hand."""

import threading

from bed import MakeTopic, Running, catch_up, committed, of_kind, produce, wait_for
from penstock import App, Record
from penstock.core import events
from penstock.kafka import Cluster


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
    for record in kept:  # from another thread than the handler's, long after it returned
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
    assert again == [6, 8], "what was not acknowledged comes again, and nothing else"
