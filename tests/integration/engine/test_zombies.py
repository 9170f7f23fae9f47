"""A member was frozen longer than its session timeout.

Another one owns its partitions, so it must start none of their records.
"""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.checker import a_zombie_starts_nothing
from chaos.fleet import Fleet
from chaos.history import Fault, History
from kafka_helpers import WAIT_SECONDS, MakeTopic, wait_for
from penstock.kafka import make_producer

PARTITIONS = 4


@pytest.fixture(params=["native", "own"])
def fleet(
    request: pytest.FixtureRequest, tmp_path: Path, brokers: str, group: str, make_topic: MakeTopic
) -> Iterator[Fleet]:
    """Members whose handlers take up to 0.1 s, with more records than they can handle in this test."""
    source = make_topic(PARTITIONS)
    producer = make_producer(brokers, settings={})
    for number in range(20_000):
        producer.produce(source, value=b"%d" % number, key=b"key-%d" % (number % 500))
    assert producer.flush(WAIT_SECONDS) == 0
    environment = {"CHAOS_GROUP": group, "CHAOS_TOPIC": source, "CHAOS_SECONDS": "0.1", "PENSTOCK_BROKERS": brokers}
    fleet = Fleet(tmp_path, environment, [request.param])
    yield fleet
    fleet.close()


def test_a_member_that_slept_past_its_session_starts_no_record_of_lost_partitions(fleet: Fleet) -> None:
    sleeper = fleet.start()
    wait_for(lambda: len(sleeper.reported("finished")) > 50, "the first member to work")
    slept = time.time()
    sleeper.popen.send_signal(signal.SIGSTOP)
    heir = fleet.start()
    wait_for(lambda: len(heir.reported("assigned")) == PARTITIONS, "the second member to take over")
    wait_for(lambda: heir.reported("finished"), "the second member to work")
    woke = time.time()
    sleeper.popen.send_signal(signal.SIGCONT)
    wait_for(lambda: len(sleeper.reported("lost")) == PARTITIONS, "the first member to learn of it")

    history = History(
        files={each.name: each.reported() for each in (sleeper, heir)},
        produced={},
        ends={},
        committed={},
        faults=[Fault(kind="freeze", process=sleeper.name, ts=slept, until=woke)],
    )
    assert list(a_zombie_starts_nothing(history)) == []
