"""The feed in this process: rows of what is followed, and what made a read fail."""

import threading
import weakref
from collections.abc import Mapping
from typing import ClassVar

import pytest

from penstock.dashboard.feed import feed_channel
from penstock.dashboard.feed.cluster_connection import ClusterConnection
from penstock.dashboard.feed.feed_follower import FeedFollower, topic_of
from penstock.dashboard.feed.feed_source import DashboardContext, Publish
from penstock.errors import ServerError
from penstock.kafka import Cluster

WAIT = 60


def no_cluster() -> Cluster:
    raise AssertionError("no test here needs Kafka")


CONTEXT = DashboardContext(ClusterConnection(no_cluster), allow_writes=False, note=lambda _line: None)


class Named:
    every = 0.01

    def __init__(self, name: str) -> None:
        self._name = name
        self.seen: list[frozenset[str]] = []
        self.closed = threading.Event()

    def read(self, publish: Publish, visible: frozenset[str]) -> None:
        self.seen.append(visible)
        if self._name == "broken":
            raise ServerError("No broker answers.", hint="Start one.")
        publish({self._name: {"name": self._name, "sees": sorted(visible)}})

    def close(self) -> None:
        self.closed.set()


@pytest.fixture
def followed() -> tuple[FeedFollower, dict[str, Named], threading.Condition]:
    sources: dict[str, Named] = {}
    changes = threading.Condition()

    def make(_context: DashboardContext, given: Mapping[str, str]) -> Named:
        return sources.setdefault(given["name"], Named(given["name"]))

    def changed() -> None:
        with changes:
            changes.notify_all()

    return FeedFollower({"things": make}, CONTEXT, changed), sources, changes


def test_what_is_followed_has_rows_and_what_is_left_is_closed(
    followed: tuple[FeedFollower, dict[str, Named], threading.Condition],
) -> None:
    feed, sources, changes = followed
    a, b = topic_of("things", name="a"), topic_of("things", name="b & c")
    feed.follow([a, b])
    feed.look(a, ["x"])
    with changes:
        assert changes.wait_for(lambda: feed.state(a).rows.get("a", {}).get("sees") == ["x"], WAIT)
        assert changes.wait_for(lambda: "b & c" in feed.state(b).rows, WAIT)
    feed.follow([b])
    assert sources["a"].closed.wait(WAIT)
    assert not sources["b & c"].closed.is_set()
    assert feed.state(a).rows == {}
    feed.close()
    assert sources["b & c"].closed.wait(WAIT)


class Connected:
    """Stands for the client of a cluster."""


class Forgetful(Named):
    clients: ClassVar[list["weakref.ref[Connected]"]] = []

    def read(self, publish: Publish, visible: frozenset[str]) -> None:
        client = Connected()
        self.clients.append(weakref.ref(client))
        super().read(publish, visible)


def test_a_failed_read_keeps_no_client_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_channel, "_TRY_AGAIN_SECONDS", WAIT)  # the next failure would replace this one
    sources = {"things": lambda _context, _given: Forgetful("broken")}
    reads = threading.Condition()

    def changed() -> None:
        with reads:
            reads.notify_all()

    feed = FeedFollower(sources, CONTEXT, changed)
    feed.follow(["things"])
    with reads:
        assert reads.wait_for(lambda: feed.state("things").trouble is not None, WAIT)
        assert reads.wait_for(lambda: Forgetful.clients[0]() is None, 5), "without a run of the garbage collector"
    feed.close()


def test_a_failed_read_is_kept_as_its_error(
    followed: tuple[FeedFollower, dict[str, Named], threading.Condition],
) -> None:
    feed, _, changes = followed
    topic = topic_of("things", name="broken")
    feed.follow([topic])
    with changes:
        assert changes.wait_for(lambda: isinstance(feed.state(topic).trouble, ServerError), WAIT)
    feed.close()
