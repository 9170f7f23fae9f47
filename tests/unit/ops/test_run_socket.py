"""The socket of a run: only this user may connect, and whatever is sent, the answer says what to do."""

import getpass
import json
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock import App
from penstock.core.reports.events import Commanded
from penstock.engine import HealthBoard
from penstock.engine.observe.member_metrics import MemberMetrics, Stopwatches
from penstock.errors import ConfigError, StateError
from penstock.ops.live_runs import command_runs, read_changes, read_partition
from penstock.ops.member_recommendation import measured_here
from penstock.ops.run_socket import ask_run, run_socket_of
from penstock.ops.runs import RegisteredRun, alive, registered
from penstock.testing import Bench


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="p"))
    monkeypatch.setenv("PENSTOCK_HOME", str(folder))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def bench() -> Bench:
    app = App("shop")

    @app.consume("orders")
    def ship(order: int) -> None: ...

    bench = Bench(app, partitions=2)
    bench.run_until_idle()
    return bench


@pytest.fixture
def run(bench: Bench) -> Iterator[RegisteredRun]:
    with (
        run_socket_of(bench._users_app, HealthBoard().member_metrics, warn=pytest.fail) as path,
        registered("shop", engine="local", groups=["g"], warn=pytest.fail, socket=path),
    ):
        yield alive()[0]


def raw(run: RegisteredRun, request: bytes) -> dict[str, Any]:
    assert run.socket is not None
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        connection.connect(run.socket)
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as answer:
            found: dict[str, Any] = json.loads(answer.readline())
            return found


def test_a_run_answers_how_its_handlers_stand_and_takes_commands(bench: Bench, run: RegisteredRun) -> None:
    (state,) = ask_run(run, {"call": "read"})["handlers"]
    assert state == {
        "handler": "ship",
        "group": "shop",
        "paused": False,
        "paused_partitions": [],
        "partitions": ["orders[0]", "orders[1]"],
        "concurrency": 32,
        "rate": None,
    }
    via = {"via": "penstock pause"}
    (state,) = ask_run(run, {"call": "pause", "partitions": [["orders", 1]], **via})["handlers"]
    assert state["paused_partitions"] == ["orders[1]"]
    (answer,) = command_runs("shop", {"call": "set", "changes": {"concurrency": 4}, **via})
    assert answer.handlers[0]["concurrency"] == 4
    assert [(each.by, each.via) for each in bench.events_of(Commanded)] == [(getpass.getuser(), "penstock pause")] * 2


def test_a_run_answers_what_its_members_have_measured(bench: Bench) -> None:
    watches = Stopwatches(lambda: 0.0)
    watches.worked(10, 2.0)
    member = MemberMetrics(
        handler="ship",
        group="shop",
        in_flight=0,
        lanes=0,
        works=0,
        concurrency=8,
        polled_seconds_ago=0.0,
        longest_seconds=0.0,
        map_bytes={("orders", 0): 0, ("orders", 1): 0},
        watches=watches,
    )
    with (
        run_socket_of(bench._users_app, lambda: [member], warn=pytest.fail) as path,
        registered("shop", engine="local", groups=["shop", "bills"], warn=pytest.fail, socket=path),
    ):
        assert measured_here("bills") == [], "its other group"
        (found,) = ask_run(alive()[0], {"call": "measure"})["members"]
        (same,) = measured_here("shop")
    assert found == {
        "group": "shop",
        "handler": "ship",
        "topics": ["orders"],
        "concurrency": 8,
        "records": 10,
        "seconds": 2.0,
        "one_per_partition": False,
    }
    assert msgspec.to_builtins(same) == found


def test_only_this_user_can_connect_and_nothing_is_left_behind(bench: Bench, home: Path) -> None:
    before = os.umask(0)
    try:
        with run_socket_of(bench._users_app, HealthBoard().member_metrics, warn=pytest.fail) as path:
            assert path == str(home / "runs" / f"{os.getpid()}.sock")
            assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
            assert stat.S_IMODE(Path(path).parent.stat().st_mode) == 0o700
    finally:
        os.umask(before)
    assert not Path(path).exists()


def test_a_long_path_is_replaced_by_a_short_one(bench: Bench, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(home / ("x" * 100)))
    with run_socket_of(bench._users_app, HealthBoard().member_metrics, warn=pytest.fail) as path:
        assert path is not None
        assert len(path) < 100
        with registered("shop", engine="local", groups=[], warn=pytest.fail, socket=path):
            assert ask_run(alive()[0], {"call": "read"})["handlers"]
        assert stat.S_IMODE(Path(path).parent.stat().st_mode) == 0o700
    assert not Path(path).parent.exists()


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (b"\n", "is no command"),
        (b"\xff\xfe\n", "is no command"),
        (b"[]\n", "is no command"),
        (b'{"call": "stop", "via": "x"}\n', "is no command"),
        (b'{"call": "pause"}\n', "via"),
        (b'{"call": "pause", "via": "x", "by": "root"}\n', "by"),
        (b'{"call": "pause", "via": "x", "partitions": [["orders", -1]]}\n', "is not a partition"),
        (b'{"call": "pause", "via": "x", "handler": "shop"}\n', "no handler 'shop'"),
        (b'{"call": "set", "via": "x", "changes": {"settings": "x"}}\n', "cannot change"),
        (b'{"call": "set", "via": "x", "changes": {"concurrency": "many"}}\n', "is not a count"),
        (b"x" * 70_000, "too long"),
    ],
)
def test_a_wrong_request_is_answered_with_what_is_wrong(
    bench: Bench, run: RegisteredRun, request_: bytes, problem: str
) -> None:
    answer = raw(run, request_)
    assert problem in answer["error"]["problem"], answer
    assert bench.events_of(Commanded) == []


def test_foreign_text_in_a_request_does_not_reach_the_event_raw(bench: Bench, run: RegisteredRun) -> None:
    ask_run(run, {"call": "pause", "via": "\x1b[2J" + "x" * 100})
    (event,) = bench.events_of(Commanded)
    assert event.via.isprintable()
    assert len(event.via) <= 40


def test_a_refusal_is_the_error_of_the_caller(run: RegisteredRun) -> None:
    with pytest.raises(ConfigError, match="concurrency=0 is not a count"):
        command_runs("shop", {"call": "set", "via": "x", "changes": {"concurrency": 0}})
    with pytest.raises(StateError, match=r"does not own orders\[7\]"):
        command_runs("g", {"call": "pause", "via": "x", "partitions": [("orders", 7)]})
    with pytest.raises(StateError, match="No running app, group or process is called 'shp'"):
        command_runs("shp", {"call": "pause", "via": "x"})


def test_a_run_that_has_no_socket_or_has_gone_says_so(home: Path) -> None:
    for socket_, problem in ((None, "takes no commands: it has no socket"), (str(home / "no"), "does not answer")):
        with (
            registered("shop", engine="local", groups=[], warn=pytest.fail, socket=socket_),
            pytest.raises(StateError, match=problem),
        ):
            command_runs("shop", {"call": "pause", "via": "x"})


def test_arguments_of_the_command_line_are_read() -> None:
    assert read_partition("orders:3") == ("orders", 3)
    assert read_changes(["concurrency=8", "x=auto"]) == {"concurrency": 8, "x": "auto"}
    digits = "9" * 5_000
    assert read_changes(["rate=--5", f"concurrency={digits}"]) == {"rate": "--5", "concurrency": digits}
    for wrong in ("orders", ":3", "orders:x", "orders:-1"):
        with pytest.raises(ConfigError, match="is not a partition"):
            read_partition(wrong)
    with pytest.raises(ConfigError, match="NAME=VALUE"):
        read_changes(["concurrency"])
