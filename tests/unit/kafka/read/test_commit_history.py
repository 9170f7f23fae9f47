"""The recent commits of a group are known only if its part of ``__consumer_offsets`` was read to the end."""

from collections.abc import Iterator
from typing import Any, cast

import pytest
from confluent_kafka import Message

from penstock.core.progress.commit_log import COMMIT_LOG
from penstock.errors import ServerError
from penstock.kafka import Cluster
from penstock.kafka.read.consumer_offsets import commit_history


class OnePartition:
    """A cluster with one partition of ``__consumer_offsets``."""

    def topics(self) -> dict[str, int]:
        return {COMMIT_LOG: 1}


def history(monkeypatch: pytest.MonkeyPatch, end: Exception | None) -> Any:
    def read_to_end(*_: Any, **__: Any) -> Iterator[Message]:
        yield Message(topic=COMMIT_LOG, partition=0, offset=3, key=b"", value=b"")
        if end is not None:
            raise end

    module = "penstock.kafka.read.consumer_offsets"
    monkeypatch.setattr(f"{module}._starts", lambda _cluster, tps, _since: dict.fromkeys(tps, 0))
    monkeypatch.setattr(f"{module}.read_to_end", read_to_end)
    return commit_history(cast("Cluster", OnePartition()), ["g"], since=0.0, seconds=1.0)


def test_a_log_that_was_read_to_its_end_is_a_history(monkeypatch: pytest.MonkeyPatch) -> None:
    assert history(monkeypatch, None) == {"g": {}}


@pytest.mark.parametrize("end", [TimeoutError("not at the end yet"), ServerError("no broker answers")])
def test_a_log_that_was_not_read_to_its_end_is_no_history(monkeypatch: pytest.MonkeyPatch, end: Exception) -> None:
    assert history(monkeypatch, end) is None, "a part of it would look as if commits had stopped"
