"""The feed: rows once, then the fields that change; and nothing is read that nobody looks at."""

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from penstock.dashboard.feed import live_feed
from penstock.dashboard.feed.cluster_connection import ClusterConnection
from penstock.dashboard.feed.feed_channel import pause_after
from penstock.dashboard.feed.feed_source import DashboardContext, Publish, Rows
from penstock.dashboard.feed.live_feed import FeedViewer, LiveFeed
from penstock.dashboard.feed.row_changes import RowChanges, row_changes
from penstock.errors import ConfigError, ServerError
from penstock.kafka import Cluster


def _no_cluster() -> Cluster:
    raise AssertionError("no test here needs Kafka")


CONTEXT = DashboardContext(ClusterConnection(_no_cluster), allow_writes=False, note=lambda _line: None)


class Scripted:
    """A source that publishes what the test gives it, each time when the test allows it."""

    every = 0.0

    def __init__(self, *reads: Rows | Exception) -> None:
        self._reads = list(reads)
        self.turns = threading.Semaphore(0)
        self.visible: list[frozenset[str]] = []
        self.closed = threading.Event()

    def read(self, publish: Publish, visible: frozenset[str]) -> None:
        while not self.turns.acquire(timeout=0.05):
            if self.closed.is_set():
                return
        self.visible.append(visible)
        found = self._reads.pop(0) if self._reads else {}
        if isinstance(found, Exception):
            raise found
        publish(found)

    def allow(self) -> None:
        self.turns.release()

    def close(self) -> None:
        self.closed.set()


def feed_of(source: Scripted) -> LiveFeed:
    def make(_context: DashboardContext, given: Mapping[str, str]) -> Scripted:
        if "wrong" in given:
            raise ConfigError("wrong parameter")
        return source

    return LiveFeed({"things": make}, CONTEXT)


async def following(feed: LiveFeed, viewer: FeedViewer, count: int) -> list[dict[str, Any]]:
    """Return the next messages."""
    found: list[dict[str, Any]] = []
    async for messages in feed.messages(viewer, at_least_every=30):
        found += [msgspec.json.decode(each) for each in messages]
        if len(found) >= count:
            break
    return found


def test_a_row_that_changed_sends_only_its_changed_fields() -> None:
    before: Rows = {"a": {"x": 1, "y": 2}, "b": {"x": 1}, "c": {"x": 1}}
    after: Rows = {"a": {"x": 1, "y": 3}, "b": {"x": 1}, "d": {"x": 9}}
    assert row_changes(before, after) == RowChanges({"a": {"y": 3}, "d": {"x": 9}}, ["c"])
    assert row_changes({"a": {"x": 1, "y": 2}}, {"a": {"x": 1}}).fields == {"a": {"y": None}}
    assert not row_changes(before, {key: dict(row) for key, row in before.items()})


def test_a_viewer_gets_all_rows_once_and_then_changes() -> None:
    async def scenario() -> None:
        source = Scripted({"a": {"x": 1, "y": 1}}, {"a": {"x": 2, "y": 1}})
        feed = feed_of(source)
        first = feed.join(["things"])
        source.allow()
        assert (await following(feed, first, 1))[0]["rows"] == {"a": {"x": 1, "y": 1}}
        source.allow()
        assert (await following(feed, first, 1))[0]["set"] == {"a": {"x": 2}}
        # A second viewer shares the source, and gets everything.
        second = feed.join(["things"])
        assert (await following(feed, second, 1))[0]["rows"] == {"a": {"x": 2, "y": 1}}
        feed.close()

    asyncio.run(scenario())


def test_a_failure_is_told_and_the_source_is_read_again() -> None:
    async def scenario() -> None:
        source = Scripted(ServerError("No broker answers.", hint="Start one."), {"a": {"x": 1}})
        feed = feed_of(source)
        viewer = feed.join(["things"])
        source.allow()
        told = (await following(feed, viewer, 1))[0]
        assert told["trouble"] == {"problem": "No broker answers.", "hint": "Start one."}
        assert told["complete"] is False
        source.allow()
        messages = await following(feed, viewer, 1)
        if messages[-1]["trouble"] is not None:  # the end of the trouble follows
            messages += await following(feed, viewer, 1)
        assert messages[0]["rows"] == {"a": {"x": 1}}
        assert messages[-1]["trouble"] is None
        feed.close()

    asyncio.run(scenario())


def test_the_source_learns_which_rows_are_on_a_screen() -> None:
    async def scenario() -> None:
        source = Scripted({"a": {}}, {"a": {}, "b": {}})
        feed = feed_of(source)
        viewer = feed.join(["things"])
        source.allow()
        await following(feed, viewer, 1)
        feed.look(viewer.id, "things", ["a", "z"])
        feed.look("nobody", "things", ["q"])
        source.allow()
        await following(feed, viewer, 1)
        # The read before may have begun before the look.
        source.allow()
        await asyncio.to_thread(_until, lambda: len(source.visible) >= 3)
        assert source.visible[-1] == {"a", "z"}
        feed.close()

    asyncio.run(scenario())


def test_a_source_ends_after_its_last_viewer_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_feed, "_LINGER_SECONDS", 0.0)

    async def scenario() -> None:
        source = Scripted({"a": {}})
        feed = feed_of(source)
        one, two = feed.join(["things"]), feed.join(["things"])
        feed.leave(one)
        await asyncio.sleep(0.05)
        source.allow()
        await following(feed, two, 1)
        assert not source.closed.is_set()
        feed.leave(two)
        source.allow()
        await asyncio.to_thread(source.closed.wait)
        feed.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("topic", ["nothing", "things?wrong=1"])
def test_a_topic_that_cannot_be_read_is_refused(topic: str) -> None:
    async def scenario() -> None:
        feed = feed_of(Scripted())
        with pytest.raises(ConfigError):
            feed.join([topic])
        feed.close()

    asyncio.run(scenario())


def test_a_refused_topic_leaves_no_other_one_open() -> None:
    async def scenario() -> None:
        source = Scripted()
        feed = feed_of(source)
        with pytest.raises(ConfigError):
            feed.join(["things", "nothing"])
        source.allow()
        await asyncio.sleep(0.2)
        assert source.visible == [], "nobody looks at it, and it is read"
        feed.close()

    asyncio.run(scenario())


def test_rows_that_only_a_viewer_who_left_saw_are_not_read_on() -> None:
    async def scenario() -> None:
        source = Scripted(*({"a": {"n": number}} for number in range(9)))
        feed = feed_of(source)
        one, two = feed.join(["things"]), feed.join(["things"])
        feed.look(one.id, "things", ["a", "b"])
        feed.look(two.id, "things", ["b", "c"])
        feed.leave(one)
        for count in range(1, 4):  # the first read may have begun before
            source.allow()
            await asyncio.to_thread(_until, lambda count=count: len(source.visible) >= count)
        assert source.visible[-1] == {"b", "c"}
        feed.close()

    asyncio.run(scenario())


def _until(condition: Any) -> None:
    while not condition():
        threading.Event().wait(0.01)


def test_the_pause_after_a_read_bounds_what_a_source_costs() -> None:
    assert pause_after(2.0, 0.01, 0.005) == 2.0
    assert pause_after(2.0, 1.0, 0.01) == 4.0, "brokers are slow"
    assert pause_after(2.0, 20.0, 0.01) == 10.0, "brokers were down: their figures must not stay old for long"
    assert pause_after(2.0, 0.3, 0.2) == 8.0, "the source has much to do"
