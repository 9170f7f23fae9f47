"""Waits in retry topics, and options that need a cluster."""

from datetime import UTC, datetime
from typing import Any

import pytest

from penstock import App, Record, Retry
from penstock.errors import ConfigError
from penstock.testing import Bench


def test_a_record_waits_in_a_retry_topic_until_it_is_due_and_blocks_no_other() -> None:
    app, seen = App("shop"), list[tuple[int, int, str]]()

    @app.consume("orders", retry=Retry(attempts=3, first="1m"), retry_topics=["1m"])
    def handle(value: int, record: Record) -> None:
        seen.append((value, record.attempt, record.topic))
        if value == 1 and record.attempt < 2:
            raise OSError("away")

    bench = Bench(app)
    bench.produce("orders", 1)
    bench.produce("orders", 2)
    bench.advance("59s")
    assert seen == [(1, 1, "orders"), (2, 1, "orders")]
    assert bench.committed("orders") == {0: 2}
    bench.advance("2s")
    assert seen[2:] == [(1, 2, "orders.retry.1m")]
    bench.stop()
    assert bench.lag("orders.retry.1m") == 0


@pytest.mark.parametrize(
    "options",
    [
        {"pattern": "orders.*"},
        {"partitions": [("orders", 0)]},
        {"from_": "earliest"},
        {"start": datetime(2026, 1, 1, tzinfo=UTC)},
    ],
)
def test_options_that_need_a_cluster_are_refused(options: dict[str, Any]) -> None:
    app = App("shop")

    def handle(value: int) -> None: ...

    app.consume(*(() if {"pattern", "partitions"} & options.keys() else ("orders",)), **options)(handle)
    with pytest.raises(ConfigError, match="the testing kit does not support"):
        Bench(app)
