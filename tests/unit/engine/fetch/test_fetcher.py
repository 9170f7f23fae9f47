"""The state of the fetcher, without a broker."""

from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

from penstock import App
from penstock.core.progress.lease import FOREVER
from penstock.engine.dispatch.thread_messages import Commit, CommitAnswer, Inbox
from penstock.engine.fetch.fetch_positions import FetchPositions
from penstock.engine.fetch.fetcher import Fetcher
from penstock.kafka import make_consumer


def test_a_pause_that_arrives_after_the_revoke_is_ignored() -> None:
    consumer = make_consumer("localhost:1", "shop", settings={})
    positions = FetchPositions(consumer, cooperates=True)
    try:
        positions.pause([("orders", 0)])
        assert positions._paused_by_dispatcher == set(), "otherwise it would stay paused when it is assigned again"
    finally:
        consumer.close()


def test_records_that_finish_while_a_revoke_drains_are_committed_and_answered_at_once() -> None:
    """The client is inside its callback then, so the answer to an asynchronous commit would not arrive."""
    app, inbox = App("shop"), SimpleQueue[Any]()
    app.consume("orders", commit="record")(lambda _: None)
    asked: list[bool] = []

    def commit(*, offsets: list[Any], asynchronous: bool) -> list[Any]:
        asked.append(asynchronous)
        return [
            SimpleNamespace(topic=p.topic, partition=p.partition, offset=p.offset, metadata="", error=None)
            for p in offsets
        ]

    to_dispatcher: Inbox = inbox
    fetcher = Fetcher(
        app.handlers[0], to_dispatcher, brokers="localhost:1", in_flight_room=lambda *_, **__: 1, lease=FOREVER
    )
    try:
        membership: Any = SimpleNamespace(committer=SimpleNamespace(commit=commit))
        fetcher._membership = membership
        fetcher._poller.fetch_during_drain = lambda revoked: None  # type: ignore[method-assign]
        fetcher._commit_sender.assigned([("orders", 0)])
        fetcher.ask(Commit({("orders", 0): (5, "")}, assignments=1))
        fetcher._during_drain([("orders", 0)])
    finally:
        fetcher._consumer.adopt()
        fetcher._consumer.close()
    assert asked == [False]
    assert inbox.get_nowait() == CommitAnswer({("orders", 0): (5, "")}, {})


def test_members_are_named_after_their_app_and_handler() -> None:
    app = App("my shop")

    @app.consume("orders", settings={"fetch.min.bytes": 3})
    def ship(value: bytes) -> None: ...

    @app.consume("orders", group="other", settings={"client.id": "mine"})
    def count(value: bytes) -> None: ...

    assert [each.named_settings["client.id"] for each in app.handlers] == ["my_shop-ship", "mine"]
    assert "client.id" not in app.handlers[0].settings
    assert app.handlers[0].named_settings["fetch.min.bytes"] == 3
