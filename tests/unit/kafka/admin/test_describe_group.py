"""An app describes its group from a child process, whose death it survives."""

import socket
from collections.abc import Iterator

import pytest

from penstock.kafka import Cluster, child_process
from penstock.kafka.admin.describe_group import describe_group as describe


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """It accepts connections, and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield Cluster(f"127.0.0.1:{server.getsockname()[1]}")


@pytest.mark.parametrize("child", ["import os; os.abort()", "raise SystemExit(3)", "raise ValueError"])
def test_a_child_that_dies_gives_no_answer(monkeypatch: pytest.MonkeyPatch, cluster: Cluster, child: str) -> None:
    monkeypatch.setattr(child_process, "_CHILD", child)
    assert describe(cluster, "shop") is None


def test_settings_that_cannot_travel_give_no_answer(cluster: Cluster) -> None:
    cluster.settings = {"oauth_cb": lambda _: None}
    assert describe(cluster, "shop") is None
