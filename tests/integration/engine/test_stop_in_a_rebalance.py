"""A clean stop while the group waits for a silent member: finished records are committed anyway."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, ConsumerGroupState
from confluent_kafka.admin import AdminClient

from kafka_helpers import MakeTopic, Running, catch_up, of_kind, produce, wait_for
from penstock import App, Record
from penstock.core.reports import events
from penstock.kafka import make_consumer

# A killed member delays its group for the session timeout; so does the silent one here.
SILENCE_SECONDS = 7.0
HEARTBEATS_SECONDS = 1.5
QUICK = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 300}


class Bystander:
    """A plain consumer of the same group, which answers rebalances only while it is polled."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.answers = threading.Event()
        self.ends = threading.Event()

    def run(self) -> None:
        while not self.ends.is_set():
            if self.answers.wait(0.05):
                self.consumer.poll(0.05)


@contextmanager
def bystander(brokers: str, group: str, topic: str) -> Iterator[Bystander]:
    member = {"partition.assignment.strategy": "cooperative-sticky"}
    made = Bystander(make_consumer(brokers, group, settings=QUICK, member=member))
    made.consumer.subscribe([topic])
    made.answers.set()
    thread = threading.Thread(target=made.run)
    thread.start()
    try:
        yield made
    finally:
        made.ends.set()
        thread.join()
        made.consumer.close()


def test_a_clean_stop_while_a_rebalance_waits_for_another_member_repeats_nothing(
    brokers: str, group: str, make_topic: MakeTopic
) -> None:
    # Two members have three partitions each, three have two. So the rebalance moves one of the member's partitions.
    source, seen = make_topic(6), Counter[tuple[int, int]]()
    app = App(group)

    # Commits are rare, so only the one at the stop counts.
    @app.consume(source, commit_every="1h", settings=QUICK)
    def handle(value: bytes, record: Record) -> None:
        seen[record.partition, record.offset] += 1

    member = Running(app, brokers)
    wait_for(lambda: len(owned(member)) == 6, "the member to own all partitions")
    with bystander(brokers, group, source) as silent:
        mine = wait_for(lambda: len(owned(member)) == 3 and owned(member), "the second one to have its part")
        wait_for(lambda: is_in(brokers, group, ConsumerGroupState.STABLE), "the group to settle")
        for partition in mine:
            produce(brokers, source, range(100), partition=partition)
        wait_for(lambda: len(seen) == 300, "the member to finish its records")
        silent.answers.clear()
        with bystander(brokers, group, source):
            wait_for(lambda: is_in(brokers, group, ConsumerGroupState.PREPARING_REBALANCING), "a rebalance")
            # From now on the member's requests wait at the broker behind its join request. The test cannot see when it
            # sends that request, but it does so at its next heartbeat at the latest.
            silent.answers.wait(HEARTBEATS_SECONDS)
            threading.Timer(SILENCE_SECONDS, silent.answers.set).start()
            member.stop()
    assert len(seen) == 300
    catch_up(app, brokers)
    assert set(seen.values()) == {1}


def owned(member: Running) -> set[int]:
    gone = {event.partition for event in of_kind(member.events, events.Revoked)}
    return {event.partition for event in of_kind(member.events, events.Assigned)} - gone


def is_in(brokers: str, group: str, state: ConsumerGroupState) -> bool:
    admin = AdminClient({"bootstrap.servers": brokers})
    return bool(admin.describe_consumer_groups([group])[group].result().state == state)
