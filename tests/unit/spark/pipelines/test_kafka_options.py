"""The options of Spark's Kafka source and sink."""

from penstock.spark.pipelines.kafka_options import client_options, reading_options, sink_options


def test_the_source_reads_committed_records_and_does_not_wait_at_the_end_of_a_log() -> None:
    options = reading_options(client_options("localhost:9092", {}))
    assert options["kafka.isolation.level"] == "read_committed"
    assert options["kafka.fetch.max.wait.ms"] == "10"
    assert (options["includeHeaders"], options["failOnDataLoss"]) == ("true", "true")
    assert options["kafka.bootstrap.servers"] == "localhost:9092"


def test_your_settings_override_speed_but_not_guarantees() -> None:
    clients = {"kafka.fetch.max.wait.ms": "300", "failOnDataLoss": "false", "kafka.linger.ms": "0", "kafka.acks": "1"}
    assert reading_options(clients)["kafka.fetch.max.wait.ms"] == "300"
    assert reading_options(clients)["failOnDataLoss"] == "true"
    assert (sink_options(clients)["kafka.linger.ms"], sink_options(clients)["kafka.acks"]) == ("0", "all")
