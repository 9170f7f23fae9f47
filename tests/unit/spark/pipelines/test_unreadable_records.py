"""The driver of a pipeline writes the dead letters of unreadable records."""

from types import TracebackType
from typing import Any, Self, cast

import pytest

from penstock import App
from penstock.app.pipelines import Console
from penstock.kafka import Cluster
from penstock.spark.pipelines import unreadable
from penstock.spark.pipelines.unreadable import UnreadableRecords


def test_the_producer_is_made_before_the_records_are_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A producer that sends before it is connected waits for half a second."""
    steps: list[str] = []

    class Producer:
        def __init__(self, _brokers: str, **_: Any) -> None:
            steps.append("producer")

        def __enter__(self) -> Self:
            return self

        def __exit__(self, _kind: object, _error: BaseException | None, _: TracebackType | None) -> None: ...

    def read_positions(*_: Any) -> list[Any]:
        steps.append("fetch")
        return []

    monkeypatch.setattr(unreadable, "Producer", Producer)
    monkeypatch.setattr(unreadable, "read_positions", read_positions)
    app = App("lake", brokers="localhost:1")
    app.pipeline("orders", to=Console(), dead_letter="orders.dlq")(lambda orders: orders)
    (pipeline,) = app.pipelines
    (source,) = pipeline.sources.values()
    records = UnreadableRecords(pipeline, source, None)
    cluster: Any = cast("Cluster", type("Nowhere", (), {"brokers": "localhost:1"})())
    assert records.write_letters(cast("Any", None), cluster, []) == 0
    assert steps == ["producer", "fetch"]
