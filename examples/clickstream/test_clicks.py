"""The declaration needs no Spark. The tests on Kafka and Spark are in tests/integration/pipelines."""

from clicks import app


def test_the_pipeline_writes_counts_and_dead_letters() -> None:
    (pipeline,) = app.pipelines
    assert [*pipeline.sources] == ["clicks"]
    assert [str(sink) for sink in pipeline.sinks] == ["delta table clicks_per_minute"]
