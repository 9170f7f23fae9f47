"""Many bad records among good ones: every good one is handled, every bad one is dead-lettered, each of them once."""

from collections import Counter

import pytest

from kafka_helpers import WAIT_SECONDS, MakeTopic, catch_up, lag, of_kind, read_records
from penstock import App, Reject, Retry
from penstock.core.reports import events
from penstock.core.scheduling.lanes import Order
from penstock.kafka import Cluster, make_producer

RECORDS = 10_000


def is_poison(value: int) -> bool:
    return value % 5 == 0


@pytest.mark.parametrize("order", ["key", "none"])
def test_2000_poison_records_of_10000_become_dead_letters_and_the_others_are_handled(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, order: Order
) -> None:
    source, dlq = make_topic(2), f"{group}.dlq"
    finished: Counter[int] = Counter()
    app = App(group)

    @app.consume(source, order=order, dead_letter=dlq, retry=Retry(attempts=2, first="10ms", jitter=0))
    def handle(value: int) -> None:
        if is_poison(value):
            # Some fail for good at the first attempt, some only after a retry.
            raise Reject("poison") if value % 2 else OSError("poison")
        finished[value] += 1

    producer = make_producer(brokers, settings={})
    for number in range(RECORDS):
        producer.produce(source, value=b"%d" % number, key=b"key-%d" % (number % 333))
    assert producer.flush(WAIT_SECONDS) == 0

    seen = catch_up(app, brokers, per_record=True)
    assert finished == Counter(value for value in range(RECORDS) if not is_poison(value))
    letters = Counter(int(record.value or b"") for record in read_records(brokers, dlq))
    assert letters == Counter(value for value in range(RECORDS) if is_poison(value))
    assert lag(cluster, group, source) == 0
    done = [(event.partition, event.offset) for event in of_kind(seen, events.Finished)]
    dead = [(event.partition, event.offset) for event in of_kind(seen, events.DeadLettered)]
    assert (len(done), len(dead)) == (8_000, 2_000)
    assert len({*done, *dead}) == RECORDS
