"""What pages show is read in a child process: the feed goes on when it dies, and it keeps no secret to itself."""

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from penstock.core.settings import Settings
from penstock.dashboard import follow_feed
from penstock.dashboard.child.dashboard_child import ChildSource, DashboardChild
from penstock.dashboard.child.page_service import Brokers, Note, PageService, RowsPart
from penstock.dashboard.feed import feed_channel
from penstock.dashboard.feed.cluster_connection import ClusterConnection
from penstock.dashboard.feed.feed_source import DashboardContext, Publish, Rows
from penstock.errors import ConfigError, ServerError, StateError
from penstock.kafka import Cluster, child_process
from penstock.kafka.child_process import ChildProcess
from penstock.ops.runs import registered

_WAIT = 60
_SECRET = "correct-horse-battery"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))


def no_cluster() -> Cluster:
    raise ServerError("No Kafka.")


def cluster_with_a_secret() -> Cluster:
    Settings({"sasl.password": _SECRET})
    raise ServerError(f"refused {_SECRET}", hint=f"not {_SECRET}")


class Changes:
    """Waits for what the feed says."""

    def __init__(self) -> None:
        self._condition = threading.Condition()

    def __call__(self) -> None:
        with self._condition:
            self._condition.notify_all()

    def wait_for(self, condition: Callable[[], bool]) -> None:
        with self._condition:
            assert self._condition.wait_for(condition, _WAIT)


def test_the_feed_goes_on_after_the_death_of_its_child_and_keeps_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_channel, "_TRY_AGAIN_SECONDS", 0.1)
    changes = Changes()
    with (
        registered("shop", engine="local", groups=["g"], warn=pytest.fail),
        follow_feed(no_cluster, changes) as (feed, child),
    ):
        feed.follow(["apps"])
        changes.wait_for(lambda: bool(feed.state("apps").rows))
        rows, first = feed.state("apps").rows, child.pid
        assert [row["app"] for row in rows.values()] == ["shop"]
        assert first is not None
        with monkeypatch.context() as patch:
            patch.setattr(child_process, "_CHILD", "import os; os.abort()")  # no other one can start
            os.kill(first, signal.SIGABRT)
            changes.wait_for(lambda: feed.state("apps").trouble is not None)
            trouble = feed.state("apps").trouble
            assert isinstance(trouble, ServerError)
            assert trouble.problem == "The process that reads for this page has died (killed by SIGABRT)."
            assert feed.state("apps").rows == rows
        changes.wait_for(lambda: feed.state("apps").trouble is None)
        assert feed.state("apps").rows == rows
        assert child.pid not in {None, first}
        last = child.pid
    assert last is not None
    assert not psutil.pid_exists(last), "it ends with the feed"


def test_a_wrong_parameter_is_refused_without_a_child() -> None:
    child = DashboardChild(no_cluster, note=pytest.fail)
    context = DashboardContext(ClusterConnection(no_cluster), allow_writes=False, note=pytest.fail)
    with pytest.raises(ConfigError, match="no name"):
        child.makers()["group"](context, {})
    assert child.pid is None
    child.close()


def test_endpoints_are_answered_by_the_child_with_their_errors() -> None:
    child = DashboardChild(no_cluster, note=pytest.fail)
    with pytest.raises(StateError, match="does not run on this machine"):
        child.answer("app", "preview", {"run": "here:1", "action": "pause", "handler": "h"})
    with pytest.raises(ServerError, match="No Kafka"):
        child.answer("records", "read", {"topic": "orders"})
    child.close()


def test_secrets_that_only_the_child_knows_are_hidden() -> None:
    child = DashboardChild(cluster_with_a_secret, note=pytest.fail)
    with pytest.raises(ServerError) as endpoint:
        child.answer("records", "read", {"topic": "orders"})
    context = DashboardContext(ClusterConnection(no_cluster), allow_writes=False, note=pytest.fail)
    reader, published = child.makers()["groups"](context, {}), list[Rows]()
    with pytest.raises(ServerError) as source:
        reader.read(published.append, frozenset())
    for error in (endpoint.value, source.value):
        assert (error.problem, error.hint) == ("refused ***", "not ***")
    child.close()


def inner_function() -> Callable[[], Cluster]:
    def connect() -> Cluster:
        raise AssertionError("it cannot be imported")

    return connect


def test_settings_that_cannot_travel_are_said_on_the_page() -> None:
    changes = Changes()
    with follow_feed(inner_function(), changes) as (feed, _):
        feed.follow(["apps"])
        changes.wait_for(lambda: isinstance(feed.state("apps").trouble, ConfigError))


class Scripted:
    every = 1.0

    def __init__(self, *reads: Rows) -> None:
        self.reads = list(reads)
        self.is_closed = False

    def read(self, publish: Publish, visible: frozenset[str]) -> None:
        publish(self.reads.pop(0) | {key: {"is": "seen"} for key in visible})

    def close(self) -> None:
        self.is_closed = True


def test_only_rows_that_changed_travel(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Scripted(
        {"a": {"n": 1, "x": "***"}, "b": {"n": 2}},
        {"a": {"n": 1, "x": "***"}, "b": {"n": 3}},
        {"b": {"n": 3}},
        {"b": {"n": 3}},
    )
    said: list[Any] = []
    service = PageService(no_cluster, None, (), said.append)
    monkeypatch.setitem(service._makers, "apps", lambda _context, _given: source)
    parts: list[RowsPart] = []

    def call(method: str, *arguments: Any, part: Callable[[Any], None]) -> Any:
        def passed(value: RowsPart) -> None:
            parts.append(value)
            part(value)

        return getattr(service, method)(*arguments, part=passed)

    process = cast(ChildProcess, type("Here", (), {"call": staticmethod(call)}))
    reader = ChildSource(process, 7, "apps", {}, every=1.0)
    published: list[Rows] = []
    for _ in range(4):
        assert reader.read(published.append, frozenset()) >= 0
    assert parts == [
        RowsPart({"a": {"n": 1, "x": "***"}, "b": {"n": 2}}, [], is_all=True),
        RowsPart({"b": {"n": 3}}, [], is_all=False),
        RowsPart({}, ["a"], is_all=False),
    ]
    assert published[-1] == {"b": {"n": 3}}
    assert published[1]["a"] is published[0]["a"], "a row that did not change is the same object"
    assert published[0] == {"a": {"n": 1, "x": "***"}, "b": {"n": 2}}, "what was published does not change"
    service.close_source(7)
    assert source.is_closed


class Busy(Scripted):
    """Another thread works for it, as those of the Kafka client do."""

    def read(self, publish: Publish, visible: frozenset[str]) -> None:
        worker = threading.Thread(target=self._work)
        worker.start()
        worker.join()
        super().read(publish, visible)

    def _work(self) -> None:
        began = time.thread_time()
        while time.thread_time() - began < 0.1:
            pass


def test_the_processor_time_of_all_threads_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    service = PageService(no_cluster, None, (), lambda _: None)
    monkeypatch.setitem(service._makers, "apps", lambda _context, _given: Busy({}))
    assert service.read(1, "apps", {}, frozenset(), part=lambda _: None) >= 0.1


def test_an_empty_source_is_complete_too(monkeypatch: pytest.MonkeyPatch) -> None:
    service = PageService(no_cluster, None, (), lambda _: None)
    monkeypatch.setitem(service._makers, "apps", lambda _context, _given: Scripted({}))
    parts: list[RowsPart] = []
    service.read(1, "apps", {}, frozenset(), part=parts.append)
    assert parts == [RowsPart({}, [], is_all=True)]


def test_the_parent_hears_of_brokers_and_writes() -> None:
    said: list[object] = []

    class Found:
        brokers = "kafka:9092"

    service = PageService(lambda: cast(Cluster, Found()), None, (), said.append)
    service._context.connection.cluster()
    service.begin()
    service.begin()
    Settings({"sasl.password": _SECRET})
    service._context.note(f"replayed with {_SECRET}")
    assert said == [Brokers("kafka:9092"), Note("replayed with ***")]
