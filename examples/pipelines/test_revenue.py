"""The declaration needs no Spark."""

from revenue import app


def test_the_pipeline_has_two_outputs_and_dead_letters() -> None:
    (pipeline,) = app.pipelines
    assert [*pipeline.outputs] == ["minutes", "sales"]
    assert len(pipeline.sinks) == 2
