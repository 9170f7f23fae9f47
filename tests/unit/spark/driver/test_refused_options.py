"""Options that Spark does not support are refused before it starts."""

import threading
from typing import Any

import pytest

from penstock import App
from penstock.errors import ConfigError
from penstock.spark.driver.spark_runner import run


@pytest.mark.parametrize(
    "options",
    [
        {"topics": ["a"], "offsets": "sqlite:///progress"},
        {"topics": ["a"], "mode": "share", "order": "none", "dead_letter": "dlq"},
    ],
)
def test_the_option_and_the_engine_that_has_it_are_named(options: dict[str, Any]) -> None:
    app = App("shop")
    app.consume(*options.pop("topics", []), **options)(lambda _: None)
    with pytest.raises(ConfigError, match="which the Spark engine does not support") as caught:
        run(app, brokers="127.0.0.1:1", emit=lambda _: None, stop=threading.Event())
    assert "--engine local" in caught.value.hint


def test_processes_are_refused_with_a_word_on_what_spark_has_instead() -> None:
    app = App("shop")
    app.consume("a", workers="process")(lambda _: None)
    with pytest.raises(ConfigError, match='workers="process", which the Spark engine does not support') as caught:
        run(app, brokers="127.0.0.1:1", emit=lambda _: None, stop=threading.Event())
    assert 'scale="cpu"' in caught.value.hint
