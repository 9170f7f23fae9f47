"""`--print-config`: the values in effect, their origins, and no secret."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from penstock import App, Jdbc, Topic
from penstock.cli.console.screen import Screen
from penstock.cli.runtime.app_config import configure, print_config


def app() -> App:
    made = App("shop", settings={"sasl.password": "hunter2", "client.id": "me"})

    @made.consume("orders", "returns", dead_letter="dlq")
    def ship(value: bytes) -> None: ...

    return made


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_SHIP_CONCURRENCY", "64")
    monkeypatch.setenv("PENSTOCK_BROKERS", "env:9092")


def printed(*, as_json: bool = False, brokers: str | None = None) -> str:
    text = io.StringIO()
    config = configure(app(), file=None, brokers=brokers, flags=["retry.attempts=9"])
    print_config(config, Screen(file=text, width=40), as_json=as_json)
    return text.getvalue()


def test_it_is_a_table_that_can_be_read() -> None:
    lines = [line.split() for line in printed().splitlines()]
    assert ["brokers", "env:9092", "PENSTOCK_BROKERS"] in lines
    assert ["create_topics", "true", "default"] in lines
    assert ["handler", "ship"] in lines
    assert ["topics", "orders,", "returns", "code"] in lines
    assert ["to", "-", "default"] in lines
    assert ["concurrency", "64", "PENSTOCK_SHIP_CONCURRENCY"] in lines
    assert ["retry.attempts", "9", "--set", "retry.attempts"] in lines
    assert ["retry.first", "1s", "default"] in lines
    assert ["sasl.password", "***", "code"] in lines
    assert ["fetch.wait.max.ms", "100", "default"] in lines


def test_json_says_the_same() -> None:
    shown: dict[str, Any] = json.loads(printed(as_json=True, brokers="line:9092"))
    assert shown["app"]["options"]["brokers"] == {"value": "line:9092", "from": "--brokers"}
    (ship,) = shown["handlers"]
    assert ship["options"]["topics"] == {"value": ["orders", "returns"], "from": "code"}
    assert ship["settings"]["client.id"] == {"value": "me", "from": "code"}


@pytest.mark.parametrize("as_json", [True, False])
def test_no_secret_is_shown(*, as_json: bool) -> None:
    assert "hunter2" not in printed(as_json=as_json)


def test_without_any_broker_the_embedded_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_BROKERS")
    monkeypatch.setattr("penstock.cli.runtime.app_config.embedded_brokers", lambda: "localhost:19092")
    assert ["brokers", "localhost:19092", "penstock", "up"] in [line.split() for line in printed().splitlines()]


def test_pipelines_are_shown_like_handlers_and_sinks_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_SHIP_CONCURRENCY")
    made = App("lake")
    sinks = {"a": [Topic("out"), Jdbc("jdbc:postgresql://db/shop", "t", password="hunter2")], "b": "other"}

    @made.pipeline("orders", to=sinks)  # type: ignore[arg-type]
    def copy(orders: Any) -> Any:
        return orders

    text = io.StringIO()
    config = configure(made, file=None, brokers=None, flags=["pipelines.*.trigger=3s"])
    print_config(config, Screen(file=text, width=40), as_json=False)
    rows = [" ".join(line.split()) for line in text.getvalue().splitlines()]
    assert "pipeline copy" in rows
    assert "to a: topic out, PostgreSQL table t, b: other code" in rows
    assert "trigger 3s --set pipelines.*.trigger" in rows
    assert "hunter2" not in text.getvalue()
