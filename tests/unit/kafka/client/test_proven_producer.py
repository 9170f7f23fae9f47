"""A broker refuses a producer's first batch and accepts the next. The client then reports the first as delivered.

The tests pass whether or not the two batches are in flight together. If they are, as nearly always, a test fails
without the check of delivery reports.
"""

from collections.abc import Callable, Iterator
from functools import partial
from queue import SimpleQueue
from typing import Any

import pytest
from confluent_kafka import KafkaError

from mock_cluster import PRODUCE, MockCluster, mock_cluster
from penstock import Producer
from penstock.core.failures.outcome import ProducerRecord
from penstock.core.progress.tracker import Tracker
from penstock.core.scheduling.effects import Attempt, Send
from penstock.core.scheduling.lanes import Epoch
from penstock.engine.dispatch.thread_messages import Delivered, Inbox
from penstock.engine.produce.outbox import Outbox
from penstock.errors import ServerError
from penstock.kafka import Cluster, make_alone_producer, make_producer
from penstock.kafka.client.transactions import Transaction, group_metadata
from penstock.kafka.read.read_records import read_to_end
from penstock.ops.produce_records import produce
from penstock.spark.tasks.outputs import ONLY_ERRORS, PlainOutputs

WAIT_SECONDS = 60.0
ANSWER_MS = 150
VALUES = [b"0", b"1", b"2"]
ONE_BATCH_EACH = {"batch.num.messages": 1, "linger.ms": 0}


@pytest.fixture
def kafka() -> Iterator[MockCluster]:
    with mock_cluster() as cluster:
        cluster.create_topic("out")
        yield cluster


def refuse_first_batch(kafka: MockCluster) -> None:
    kafka.answer_after(ANSWER_MS)
    kafka.refuse(PRODUCE, KafkaError.NOT_LEADER_FOR_PARTITION)


def values_in(kafka: MockCluster) -> list[bytes]:
    kafka.answer_after(0)
    return sorted(
        message.value() or b"" for message in read_to_end(Cluster(kafka.brokers), {("out", 0): 0}, doing="reading")
    )


def write_by_producer(kafka: MockCluster) -> None:
    with Producer(kafka.brokers, settings=ONE_BATCH_EACH) as producer:
        sent = [producer.send("out", value) for value in VALUES]
        assert sorted(each.result(WAIT_SECONDS).offset for each in sent) == [0, 1, 2]


def write_by_command(kafka: MockCluster) -> None:
    records = (ProducerRecord("out", None, value) for value in VALUES)
    assert produce(Cluster(kafka.brokers, ONE_BATCH_EACH), records, progress=lambda _: None) == len(VALUES)


def write_by_outbox(kafka: MockCluster) -> None:
    inbox: Inbox = SimpleQueue()
    make_alone = partial(make_alone_producer, kafka.brokers, {})
    batched = make_producer(kafka.brokers, settings=ONE_BATCH_EACH, proven=False)
    outbox = Outbox(batched, inbox, make_alone=make_alone, brokers=kafka.brokers)
    try:
        epoch = Epoch(("orders", 0), 1, Tracker(0), None)
        sends = [
            Send(Attempt(epoch, None, offset, 1), ProducerRecord("out", None, value))
            for offset, value in enumerate(VALUES)
        ]
        outbox.send(sends)
        delivered: list[Send] = []
        while len(delivered) < len(sends):
            answer = inbox.get(timeout=WAIT_SECONDS)
            assert isinstance(answer, Delivered)
            delivered += answer.sends
        assert sorted(send.tried.offset for send in delivered) == [0, 1, 2]
    finally:
        outbox.close()


def write_by_spark_task(kafka: MockCluster) -> None:
    producer = make_producer(kafka.brokers, settings=ONE_BATCH_EACH, proven=False, more=ONLY_ERRORS)
    make_alone = partial(make_alone_producer, kafka.brokers, {})
    outputs = PlainOutputs(producer, make_alone=make_alone, offset_of=lambda each: each, brokers=kafka.brokers)
    epoch = Epoch(("orders", 0), 1, Tracker(0), None)
    outputs.write(epoch, [*range(len(VALUES))], [ProducerRecord("out", None, value) for value in VALUES])
    assert outputs.flush() == []


@pytest.mark.parametrize("write", [write_by_producer, write_by_command, write_by_outbox, write_by_spark_task])
def test_every_record_that_counts_as_written_is_in_the_log(
    kafka: MockCluster, write: Callable[[MockCluster], None]
) -> None:
    refuse_first_batch(kafka)
    write(kafka)
    assert sorted(set(values_in(kafka))) == VALUES


def test_a_transaction_is_committed_only_with_all_of_its_records(kafka: MockCluster) -> None:
    group: Any = group_metadata(kafka.brokers, "shop", settings={})
    with Transaction(kafka.brokers, "shop:out:0", group=group, settings=ONE_BATCH_EACH) as transaction:
        transaction.fence()
        refuse_first_batch(kafka)
        transaction.write([("out", None, value, None, -1, 0) for value in VALUES])
        try:
            transaction.commit({("orders", 0): 3})
            expected = VALUES
        except ServerError:  # the client itself notices the missing batch, and fails the transaction
            expected = []
    assert values_in(kafka) == expected
