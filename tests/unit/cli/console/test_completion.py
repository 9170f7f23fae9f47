"""Names that the shell completes."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
import typer

from penstock.cli.console import completion
from penstock.cli.console.completion import complete_groups, complete_topics
from penstock.errors import ServerError


class Known:
    def topics(self) -> dict[str, int]:
        return {"orders": 3, "orders.dlq": 1, "returns": 1, "or\x1bders": 1, "__consumer_offsets": 50}


def context(**params: Any) -> typer.Context:
    return cast("typer.Context", SimpleNamespace(params=params))


def test_topics_begin_as_typed_and_kafkas_own_only_if_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def connect(brokers: str | None, *_: object) -> Known:
        asked.append(brokers)
        return Known()

    monkeypatch.setattr(completion, "connect", connect)
    monkeypatch.setenv("PENSTOCK_BROKERS", "there:9092")
    assert complete_topics(context(), "") == ["orders", "orders.dlq", "returns"]
    assert complete_topics(context(brokers="here:9092"), "ord") == ["orders", "orders.dlq"]
    assert complete_topics(context(), "__") == ["__consumer_offsets"]
    assert asked == ["there:9092", "here:9092", "there:9092"]


def test_without_a_cluster_there_are_no_names_and_no_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def connect(*_: object) -> Known:
        raise ServerError("Nobody is there.", hint="Start it.")

    monkeypatch.setattr(completion, "connect", connect)
    assert complete_topics(context(), "") == complete_groups(context(), "") == []
    assert capsys.readouterr() == ("", "")
