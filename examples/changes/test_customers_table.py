"""The declaration needs no Spark. The tests on Kafka and Spark are in tests/integration/pipelines."""

from customers_table import app


def test_the_newest_version_of_each_customer_wins() -> None:
    (pipeline,) = app.pipelines
    (sink,) = pipeline.sinks
    assert (sink.mode, sink.keys, sink.order_by) == ("upsert", ("id",), "version")
