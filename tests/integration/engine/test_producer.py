"""penstock.Producer on a real broker."""

import subprocess
import sys
from datetime import UTC, datetime

import pytest

from kafka_helpers import WAIT_SECONDS, MakeTopic, read_records
from penstock import PenstockError, Producer
from penstock.core.records.partitioner import partition_for


def test_records_are_acknowledged_where_javas_clients_would_put_them_and_refusals_are_raised(
    brokers: str, make_topic: MakeTopic
) -> None:
    topic, small = make_topic(5), make_topic(**{"max.message.bytes": "1000"})
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    with Producer(brokers) as producer:
        sent = [producer.send(topic, {"n": n}, key=f"key-{n}") for n in range(50)]
        assert {delivery.result(WAIT_SECONDS).partition for delivery in sent} == {
            partition_for(b"key-%d" % n, 5) for n in range(50)
        }
        assert all(delivery.result().partition == partition_for(b"key-%d" % n, 5) for n, delivery in enumerate(sent))
        producer.send(topic, None, key="gone", partition=2, headers={"why": "test"}, timestamp=moment).result(
            WAIT_SECONDS
        )
    (last,) = [record for record in read_records(brokers, topic) if record.key == b"gone"]
    assert (last.value, last.partition, last.headers) == (None, 2, (("why", b"test"),))
    assert last.timestamp_ms == moment.timestamp() * 1000
    producer = Producer(brokers, settings={"compression.type": "none"})
    producer.send(small, b"x" * 5_000)
    with pytest.raises(PenstockError, match=small):
        producer.close()


def test_a_producer_that_nobody_closes_writes_everything_before_the_process_ends(
    brokers: str, make_topic: MakeTopic
) -> None:
    topic = make_topic(1)
    script = f"""
from penstock import Producer
producer = Producer({brokers!r}, settings={{"linger.ms": 1000}})
for number in range(2_000):
    producer.send({topic!r}, number)
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=300)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert len(read_records(brokers, topic)) == 2_000
