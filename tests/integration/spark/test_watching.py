"""Metrics of an app on Spark from its driver, and traces that pass through its workers."""

from confluent_kafka import Producer
from prometheus_client import generate_latest

from kafka_helpers import WAIT_SECONDS, CatchUp, MakeTopic, read_records
from penstock import App
from penstock.core.reports.events import Revoked
from penstock.kafka import Cluster
from penstock.ops.metrics import EventCounters, LagPoller
from penstock.ops.metrics.exporter import make_registry
from prometheus_text import problems_of
from spans import Spans, carried, ids


def test_the_driver_counts_batches_and_a_trace_passes_through(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    orders = make_topic(1)
    app, spans, event_counters = App(group), Spans(), EventCounters()

    @app.consume(orders, to=f"{group}.out", dead_letter=f"{group}.dlq", tracing=True)
    def bill(value: int) -> int:
        return value * 2

    producer = Producer({"bootstrap.servers": brokers})
    for value in (b"1", b"none"):
        spans.produce(lambda carrier, value=value: producer.produce(orders, value, headers=dict(carrier)))  # type: ignore[misc]
    assert producer.flush(WAIT_SECONDS) == 0
    for event in catch_up(app):
        if not isinstance(event, Revoked):  # as it is while the app runs
            event_counters(event)
    watch = LagPoller(lambda: cluster, event_counters.positions)
    watch.cluster_name = "c"
    watch._look(cluster, event_counters.positions())
    text = generate_latest(make_registry(event_counters, watch, list)).decode()
    assert problems_of(text) == []
    who = f'{{group="{group}",handler="bill"}}'
    for line in (
        f"penstock_finished_records_total{who} 2.0",
        f"penstock_outputs_total{who} 1.0",
        f"penstock_dead_letters_total{who} 1.0",
        f"penstock_batch_seconds_count{who}",
        f'kafka_consumergroup_group_offset{{cluster_name="c",group="{group}",partition="0",topic="{orders}"}} 2.0',
    ):
        assert line in text
    # The workers have no tracer provider, so outputs have the headers of their records.
    (output,), (letter,) = (read_records(brokers, f"{group}.{name}") for name in ("out", "dlq"))
    assert [carried(output), carried(letter)] == [[ids(span)] for span in spans.named("send")]
