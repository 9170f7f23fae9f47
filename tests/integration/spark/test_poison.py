"""One bad record among many good ones, in a batch of many Arrow blocks."""

from kafka_helpers import WAIT_SECONDS, CatchUp, MakeTopic, lag, of_kind, read_records
from penstock import App
from penstock.core.reports import events
from penstock.kafka import Cluster, make_producer

# Each partition has more records than an Arrow block (10,000), and more than max_in_flight.
RECORDS = 100_000


def test_a_poison_record_in_the_middle_of_many_is_one_dead_letter_and_the_query_never_fails(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source, dlq = make_topic(4), f"{group}.dlq"
    producer = make_producer(brokers, settings={"linger.ms": 50})
    for number in range(RECORDS):
        value = b"poison" if number == RECORDS // 2 else b"%d" % number
        producer.produce(source, value=value, partition=number % 4)
    assert producer.flush(WAIT_SECONDS) == 0
    app = App(group)

    @app.consume(source, dead_letter=dlq, max_in_flight=5_000)
    def handle(value: int) -> None:
        pass

    seen = catch_up(app)
    (letter,) = read_records(brokers, dlq)
    assert (letter.value, dict(letter.headers)["penstock-dlq-offset"]) == (b"poison", b"12500")
    (stopped,) = of_kind(seen, events.Stopped)
    assert (stopped.read, stopped.dead_lettered) == (RECORDS, 1)
    assert not of_kind(seen, events.Restarting)
    assert not of_kind(seen, events.Error)
    assert lag(cluster, group, source) == 0
