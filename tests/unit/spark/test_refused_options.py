"""Options that would go unheard on Spark are refused before it starts."""

import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from penstock import App
from penstock.errors import ConfigError
from penstock.spark.running import run


@pytest.mark.parametrize(
    "options",
    [
        {"pattern": "a.*"},
        {"partitions": [("a", 0)]},
        {"topics": ["a"], "from_": "earliest"},
        {"topics": ["a"], "start": datetime(2025, 1, 31, tzinfo=UTC)},
        {"topics": ["a"], "start": {("a", 0): 5}},
        {"topics": ["a"], "on_assigned": print},
    ],
)
def test_the_option_and_the_engine_that_has_it_are_named(options: dict[str, Any]) -> None:
    app = App("shop")
    app.consume(*options.pop("topics", []), **options)(lambda _: None)
    with pytest.raises(ConfigError, match="which the Spark engine does not have") as caught:
        run(app, brokers="127.0.0.1:1", emit=lambda _: None, stop=threading.Event())
    assert "--engine local" in caught.value.hint
