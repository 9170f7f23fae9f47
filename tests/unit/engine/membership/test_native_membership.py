"""The membership of a handler with ``partitions=``, which joins no group."""

from queue import SimpleQueue
from typing import Any

import pytest

from penstock import App
from penstock.engine.membership import native_membership
from penstock.engine.membership.native_membership import NativeMembership


class Calls:
    """A consumer that records its calls."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def list_topics(self, topic: str, **_: Any) -> None:
        self.made.append(f"metadata of {topic}")


class StoppedError(Exception):
    """Ends the test where the partitions would be assigned."""


def test_metadata_is_asked_for_before_partitions_are_assigned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the client finds the leader only when it fetches, which takes a second."""
    app, consumer, unused = App("shop"), Calls(), Any
    app.consume(partitions=[("orders", 0), ("orders", 2)])(lambda _: None)

    def find_positions(*_: Any) -> None:
        consumer.made.append("positions")
        raise StoppedError

    monkeypatch.setattr(native_membership, "find_positions", find_positions)
    membership = NativeMembership(
        app.handlers[0],
        SimpleQueue(),
        consumer,
        commit_sender=unused,  # type: ignore[arg-type]
        known_partitions=unused,  # type: ignore[arg-type]
        store_session=None,
        during_drain=lambda _: None,
        on_rebalance=lambda _: None,
    )
    with pytest.raises(StoppedError):
        membership.join()
    assert consumer.made == ["metadata of orders", "positions"]
