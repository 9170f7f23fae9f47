"""What a run of the local engine says about itself while somebody looks, and the page that reads it."""

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from kafka_helpers import wait_for
from penstock.cli.console.handler_commands import CommandSender
from penstock.cli.console.top_app import AppView
from penstock.core.reports import events
from penstock.core.reports.run_activity import RunActivity
from penstock.dashboard import ChannelState
from penstock.dashboard.feed.cluster_connection import ClusterConnection
from penstock.dashboard.feed.feed_source import DashboardContext, Rows
from penstock.dashboard.pages.live_app_page import LiveAppSource, _rate
from penstock.engine.observe.member_activity import MemberActivity, RecordAtWork, TenantShare
from penstock.errors import ServerError, StateError
from penstock.kafka import Cluster
from penstock.ops.live_activity_file import LivePicture, live_activity_file, look_at
from penstock.ops.runs import registered
from penstock.paths import live_activity_path

WHO: dict[str, Any] = {"group": "shop", "handler": "ship"}
STARTED = events.Started(engine="local", **WHO, topics=("orders",), lag=0, order="key", concurrency=8, auto=True)
FRAMES = (
    'Traceback (most recent call last):\n  File "shop.py", line {line}, in ship\n    call()\nValueError: order {order}'
)


def failed(line: int, order: int, kind: type[events.Retried] | type[events.DeadLettered] = events.Retried) -> Any:
    more: dict[str, Any] = {"seconds": 1.0} if kind is events.Retried else {"to": "orders.dlq"}
    place: dict[str, Any] = {"group": "shop", "member": "m", "topic": "orders", "partition": 2, "offset": order}
    traceback = FRAMES.format(line=line, order=order)
    return kind(
        **place, handler="ship", epoch=1, attempt=1, reason=f"ValueError: order {order}", traceback=traceback, **more
    )


def noted(*heard: events.Event) -> dict[str, Any]:
    activity = RunActivity()
    for at, event in enumerate((STARTED, *heard)):
        activity.note(event, now=float(at))
    (handler,) = activity.as_json()
    return handler


def test_failures_at_the_same_lines_are_one_error_whatever_their_messages_say() -> None:
    handler = noted(failed(3, 1), failed(3, 2), failed(9, 3), failed(3, 4, events.DeadLettered))
    first, second = handler["errors"]
    assert (first["count"], first["retried"], first["dead"], first["to"]) == (3, 2, 1, "orders.dlq")
    assert (first["last"], first["reason"], first["first_at"], first["last_at"]) == (
        ("orders", 2, 4),
        "ValueError: order 4",
        1,
        4,
    )
    assert (second["count"], second["last"]) == (1, ("orders", 2, 3))


def test_memory_is_bounded_and_the_errors_that_were_seen_last_stay() -> None:
    progress = (events.Progressed(**WHO, read=n, written=0, dead_lettered=0, skipped=0) for n in range(500))
    handler = noted(*progress, *(failed(line, line) for line in range(100)))
    assert len(handler["points"]) == 120
    assert len(handler["errors"]) == 40
    assert handler["errors"][0]["last"] == ("orders", 2, 99)


def test_the_state_the_breaker_and_the_concurrency_follow_the_run() -> None:
    opened = events.BreakerOpened(**WHO, member="m", reason="503", seconds=30)
    assert noted(opened)["breaker"] == "503"
    assert noted(opened, events.BreakerClosed(**WHO, member="m", seconds=3))["breaker"] is None
    assert noted(events.ConcurrencyChanged(**WHO, member="m", concurrency=40, before=8))["found"] == [(1.0, 40)]
    stopped = events.Stopped(**WHO, read=1, written=1, dead_lettered=0, skipped=0, seconds=1)
    assert noted(events.Stopping(**WHO, reason="asked to"), stopped)["state"] == "stopped"
    fatal = events.Error(group="shop", reason="no such topic", fatal=True)
    assert noted(fatal, stopped)["state"] == "failed"


ACTIVITY = MemberActivity(
    handler="ship", group="shop", concurrency=8, is_auto=True, busy=1, in_flight=7, max_in_flight=100, bytes=700,
    max_bytes=10_000, small_bytes=50, lanes=3, waiting=6, sending=0, retrying=0, oldest_ms=1_500, breaker=None,
    at_work=(RecordAtWork("orders", 2, 17, "anna", 1, 4.5),), longest_lanes=(), retries=(), partitions=(),
    tenants=(TenantShare("acme", 2.0, 1, 5),),
    latency_bounds=(0.1, 1.0), latency=(5, 2, 0),
)  # fmt: skip


class Members:
    def activities(self) -> Sequence[MemberActivity]:
        return [ACTIVITY, ACTIVITY]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))


def no_cluster() -> Cluster:
    raise ServerError("No Kafka.")


def page(run: str) -> Rows:
    published: list[Rows] = []
    context = DashboardContext(ClusterConnection(no_cluster), allow_writes=False, note=pytest.fail)
    LiveAppSource(context, run).read(published.append, frozenset())
    return published[-1]


def test_a_run_writes_what_it_does_only_while_somebody_looks_and_members_are_added_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("penstock.ops.live_activity_file._WRITE_SECONDS", 0.01)
    picture, process = LivePicture(Members()), psutil.Process()
    picture.on_event(STARTED)
    picture.on_event(events.Progressed(**WHO, read=10, written=8, dead_lettered=1, skipped=0))
    path = live_activity_path(process.pid, process.create_time())
    with registered("shop", engine="local", groups=["shop"], warn=pytest.fail), live_activity_file(picture):
        run = f"{os.uname().nodename}:{process.pid}"
        time.sleep(0.2)  # time enough for a run that writes without being asked
        assert not path.exists()
        assert page(run)["run"]["is_known"] is False
        wait_for(path.exists, "the file")
        rows = page(run)
        handler = rows["handler shop ship"]
        assert rows["run"]["is_known"]
        assert (handler["members"], handler["in_flight"], handler["concurrency"], handler["lanes"]) == (2, 14, 16, 6)
        assert (handler["read"], handler["oldest"], handler["latency"]) == (10, 1.5, [10, 4, 0])
        assert handler["at_work"][0]["key"] == "anna"
        assert handler["tenants"] == [{"name": "acme", "weight": 2.0, "busy": 2, "waiting": 10}]
        shown = AppView(run, CommandSender(lambda: None)).lines(
            ChannelState(rows, None, 1), width=120, height=20, now=time.time()
        )
        text = "\n".join(each.plain for each in shown)
        assert all(each in text for each in ("14 of 200", "1.4 of 19.5 KiB", "2 of 16 busy", "orders-2@17", "4.5s"))
        assert oct(path.stat().st_mode & 0o777) == "0o600", "it has keys of records"
    assert not path.exists()
    with pytest.raises(StateError, match="has ended"):
        page(run)


@pytest.mark.parametrize(
    ("at", "rate"),
    [(20.5, 10.0), (25.0, 5.0), (45.0, 0.0)],
)
def test_the_rate_falls_to_zero_when_nothing_is_read_any_more(at: float, rate: float) -> None:
    # Records came from second 0 to 20, ten in each. A run adds no points while its counts stay the same.
    points = [(float(second), second * 10, 0, 0) for second in range(21)]
    assert _rate(points, at) == pytest.approx(rate)
    assert _rate(points[:1], at) is None


@pytest.mark.parametrize("text", ["half \ud83d", "x" * 2_000_000])
def test_what_an_error_says_can_always_be_written_and_reported(text: str) -> None:
    """A handler's error may quote a record: half a character of JSON, or megabytes, which Kafka takes in no report."""
    picture = LivePicture(Members())
    retried = failed(3, 1)
    for event in (
        STARTED,
        replace(retried, reason=f"ValueError: {text}", traceback=f"{retried.traceback}{text}"),
        events.BreakerOpened(**WHO, member="m", reason=text, seconds=30),
    ):
        picture.on_event(event)
    assert len(msgspec.json.encode(picture.as_json())) < 100_000


def test_a_damaged_file_is_no_picture() -> None:
    with registered("shop", engine="local", groups=["shop"], warn=pytest.fail):
        live_activity_path(1, 2.0).write_bytes(b'{"handlers": [')
        assert look_at(1, 2.0) is None
