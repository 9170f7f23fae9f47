"""Options that Spark does not support are refused before it starts."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from penstock import App
from penstock.errors import ConfigError
from penstock.spark.driver.spark_runner import _refuse_speculation, run


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


@pytest.mark.parametrize("delivery", ["exactly-once", "at-most-once"])
def test_tasks_that_commit_their_slice_cannot_share_it_with_others(delivery: Any) -> None:
    app = App("shop")
    app.consume("a", delivery=delivery, scale="cpu", order="key")(lambda _: None)
    with pytest.raises(ConfigError, match="with this scale several tasks share a slice") as caught:
        run(app, brokers="127.0.0.1:1", emit=lambda _: None, stop=threading.Event())
    assert 'delivery="at-least-once"' in caught.value.hint


@pytest.mark.parametrize(
    ("delivery", "speculation", "refused"),
    [("at-most-once", "true", True), ("at-most-once", "false", False), ("exactly-once", "true", False)],
)
def test_at_most_once_and_speculation_exclude_each_other(delivery: Any, speculation: str, *, refused: bool) -> None:
    app = App("shop")
    app.consume("a", delivery=delivery)(lambda _: None)
    session: Any = SimpleNamespace(conf={"spark.speculation": speculation})
    if not refused:
        _refuse_speculation(app.handlers[0], session)
        return
    with pytest.raises(ConfigError, match="Spark would kill attempts in the middle of their records"):
        _refuse_speculation(app.handlers[0], session)
