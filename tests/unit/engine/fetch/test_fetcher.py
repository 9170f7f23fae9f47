"""The state of the fetcher, without a broker."""

from queue import Empty, SimpleQueue
from types import SimpleNamespace
from typing import Any

import pytest

from penstock import App
from penstock.core.progress.lease import FOREVER
from penstock.core.records.record import TopicPartition
from penstock.engine.dispatch.thread_messages import (
    Commit,
    CommitAnswer,
    Inbox,
    Pause,
    Resume,
    Rewound,
    Seek,
    ToFetcher,
)
from penstock.engine.fetch.fetch_positions import FetchPositions
from penstock.engine.fetch.fetcher import Fetcher
from penstock.kafka import make_consumer

TP: TopicPartition = ("orders", 0)


class Client:
    """Takes all that ``FetchPositions`` asks for."""

    def __getattr__(self, _name: str) -> Any:
        return lambda *_: None


class BareFetcher(Fetcher):
    """A fetcher without a Kafka client, of which a test calls the parts."""

    def __init__(self, inbox: Any) -> None:
        app = App("shop")
        app.consume("orders")(lambda _: None)
        super().__init__(
            app.handlers[0], inbox, brokers="localhost:1", in_flight_room=lambda *_, **__: 1, lease=FOREVER
        )
        committer = SimpleNamespace(commit=lambda *, offsets, **_: [SimpleNamespace(**_fields(p)) for p in offsets])
        self._membership = SimpleNamespace(committer=committer)  # type: ignore[assignment]
        self._positions = FetchPositions(Client(), cooperates=False)

    def _make_consumer(self) -> Any:
        return Client()


def _fields(tp: Any) -> dict[str, Any]:
    return {"topic": tp.topic, "partition": tp.partition, "offset": tp.offset, "metadata": "", "error": None}


def assign(fetcher: Fetcher, start: int) -> None:
    fetcher._commit_sender.assigned([TP])
    fetcher._positions.add({TP: start})


def revoke(fetcher: Fetcher) -> None:
    fetcher._positions.remove([TP])
    fetcher._commit_sender.gone([TP])


@pytest.mark.parametrize("command", [Pause({TP: 100}, 1), Pause({TP: None}, 1), Seek({TP: 100}, 1)])
def test_a_command_from_before_a_rebalance_does_not_reach_the_new_epoch(command: ToFetcher) -> None:
    """An eager rebalance may revoke a partition and assign it again in one poll, while the command waits.

    The new epoch begins at the commit point: records 50 to 99 were not finished, and a seek would skip them. The
    dispatcher has not paused the new epoch, so it would never resume it.
    """
    inbox = SimpleQueue[Any]()
    fetcher = BareFetcher(inbox)
    assign(fetcher, 0)
    fetcher.ask(command)
    revoke(fetcher)
    assign(fetcher, 50)
    fetcher._carry_out_commands()
    fetcher._positions.retry_seeks()
    assert fetcher._positions.position(TP) == 50
    assert fetcher._positions.unpaused == {TP}
    assert inbox.empty() or inbox.get_nowait() == Rewound([])


def test_a_command_for_a_partition_that_stays_is_carried_out_after_an_assignment_of_others() -> None:
    inbox = SimpleQueue[Any]()
    fetcher = BareFetcher(inbox)
    assign(fetcher, 0)
    fetcher._commit_sender.assigned([("orders", 1)])
    fetcher.ask(Pause({TP: 100}, 1))
    fetcher._carry_out_commands()
    assert fetcher._positions.position(TP) == 100
    assert fetcher._positions.unpaused == set()
    fetcher.ask(Resume([TP], 2))
    fetcher._carry_out_commands()
    assert fetcher._positions.unpaused == {TP}
    assert inbox.get_nowait() == Rewound([TP])


def test_commands_keep_their_order_over_a_drain() -> None:
    """A resume that is asked for while a drain looks for commits must not get in front of an earlier pause."""

    class Commands(SimpleQueue[Any]):
        """The dispatcher asks for a resume at the moment in which the fetcher has found no more commands."""

        late: tuple[ToFetcher, ...] = (Resume([TP], 1),)

        def get_nowait(self) -> Any:
            try:
                return super().get_nowait()
            except Empty:
                late, self.late = self.late, ()
                for each in late:
                    self.put(each)
                raise

    fetcher = BareFetcher(SimpleQueue[Any]())
    fetcher._poller.fetch_during_drain = lambda revoked: None  # type: ignore[method-assign]
    fetcher._commands = Commands()
    assign(fetcher, 0)
    fetcher.ask(Pause({TP: None}, 1))
    fetcher._during_drain([("orders", 1)])
    fetcher._carry_out_commands()
    assert fetcher._positions.unpaused == {TP}, "the pause was first"


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
