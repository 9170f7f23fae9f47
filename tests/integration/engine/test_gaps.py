"""Missing offsets (compaction, transaction markers, a log that starts late) do not keep commits from the end."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from kafka_helpers import WAIT_SECONDS, MakeTopic, catch_up, committed, lag, produce, read_records, wait_for
from penstock import App, Record
from penstock.core.scheduling.lanes import Order
from penstock.kafka import Cluster

ORDERS: list[Order] = ["partition", "key", "none"]


@pytest.fixture
def eager_cleaner(brokers: str) -> Iterator[None]:
    """Let the broker compact every 100 ms. Its default is 15 s."""
    admin = AdminClient({"bootstrap.servers": brokers})

    def alter(operation: AlterConfigOpType, value: str | None) -> None:
        entry = ConfigEntry("log.cleaner.backoff.ms", value, incremental_operation=operation)
        for broker in admin.list_topics(timeout=WAIT_SECONDS).brokers:
            resource = ConfigResource(ResourceType.BROKER, str(broker), incremental_configs=[entry])
            for future in admin.incremental_alter_configs([resource]).values():
                future.result()

    alter(AlterConfigOpType.SET, "100")
    yield
    alter(AlterConfigOpType.DELETE, None)


@pytest.mark.usefixtures("eager_cleaner")
def test_a_compacted_topic_is_committed_to_its_end(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source = make_topic(
        **{
            "cleanup.policy": "compact",
            "segment.ms": "100",
            "min.cleanable.dirty.ratio": "0.01",
            "max.compaction.lag.ms": "100",
        }
    )
    for key in range(10):
        produce(brokers, source, range(80), key=b"key-%d" % key)

    def has_gaps() -> bool:
        # Only closed segments are compacted. A record that arrives after segment.ms closes the segment.
        produce(brokers, source, ["tick"], key=b"tick")
        offsets = [record.offset for record in read_records(brokers, source)]
        return len(offsets) < offsets[-1] // 2

    wait_for(has_gaps, "the broker to compact")
    end = cluster.end_offsets([(source, 0)])[source, 0]
    # Compaction takes long, so all three orders read one topic.
    for order in ORDERS:
        seen = consume(brokers, f"{group}-{order}", source, order)
        assert len(seen) == len({record.offset for record in seen}) < end // 2, "compacted records reach no handler"
        assert {record.key for record in seen} == {b"tick", *(b"key-%d" % key for key in range(10))}
        assert committed(cluster, f"{group}-{order}", source) == {0: end}


@pytest.mark.parametrize("order", ORDERS)
def test_a_log_that_starts_at_5000_with_transactions_behind_it_is_committed_to_its_end(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, order: Order
) -> None:
    source = make_topic()
    produce(brokers, source, range(5_000), key=b"old")
    transactions(brokers, source, transactional_id=group)
    admin = AdminClient({"bootstrap.servers": brokers})
    for future in admin.delete_records([TopicPartition(source, 0, 5_000)]).values():
        future.result()
    assert cluster.start_offsets([(source, 0)]) == {(source, 0): 5_000}

    seen = consume(brokers, group, source, order)
    kept = [n for n in range(300) if not 100 <= n < 200]
    assert sorted(int(record.value or b"") for record in seen) == kept
    # Three times a hundred records and a marker.
    assert committed(cluster, group, source) == {0: 5_303}
    assert lag(cluster, group, source) == 0


def consume(brokers: str, group: str, source: str, order: Order) -> list[Record]:
    seen: list[Record] = []
    app = App(group)

    @app.consume(source, order=order)
    def handle(record: Record) -> None:
        seen.append(record)

    catch_up(app, brokers)
    return seen


def transactions(brokers: str, topic: str, *, transactional_id: str) -> None:
    """Three transactions of 100 records each; the second one is aborted."""
    producer = Producer({"bootstrap.servers": brokers, "transactional.id": transactional_id})
    producer.init_transactions(30)
    for turn in range(3):
        producer.begin_transaction()
        for number in range(turn * 100, turn * 100 + 100):
            producer.produce(topic, b"%d" % number, key=b"key-%d" % (number % 7))
        producer.flush(WAIT_SECONDS)
        if turn == 1:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
