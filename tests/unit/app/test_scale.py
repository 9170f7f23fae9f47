"""The option ``scale``: which engines and options it works with."""

import threading
from typing import Any

import pytest

from penstock import App
from penstock.engine import run
from penstock.errors import ConfigError


def declare(**options: Any) -> App:
    app = App("shop")
    app.consume("orders", **options)(lambda _: None)
    return app


@pytest.mark.parametrize("order", ["key", "none"])
def test_a_task_that_computes_has_one_record_at_a_time_by_default(order: Any) -> None:
    assert declare(scale="cpu", order=order).handlers[0].concurrency == 1
    assert declare(scale="cpu", order=order, concurrency=4).handlers[0].concurrency == 4


def test_the_order_of_a_partition_cannot_be_kept_over_several_cores() -> None:
    assert declare(scale="cpu").handlers[0].order == "key"
    with pytest.raises(ConfigError, match="cannot keep their order") as caught:
        declare(scale="cpu", order="partition")
    assert 'order="key"' in caught.value.hint


def test_other_words_are_refused() -> None:
    with pytest.raises(ConfigError, match="scale='cores' does not exist"):
        declare(scale="cores", order="key")


def test_the_local_engine_refuses_it_and_names_what_it_has_instead() -> None:
    with pytest.raises(ConfigError, match='uses scale="cpu", which the local engine does not support') as caught:
        run(declare(scale="cpu", order="key"), brokers="127.0.0.1:1", emit=lambda _: None, stop=threading.Event())
    assert 'workers="process"' in caught.value.hint
