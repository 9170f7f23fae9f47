"""``penstock top`` with an app opened: figures and tables at every size, and pauses that are asked for first."""

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hostile_text import HOSTILE, SHOWN, Terminal, assert_harmless
from kafka_helpers import wait_for
from penstock import App
from penstock.cli.console.handler_commands import CommandSender, HandlerCommand, carry_out
from penstock.cli.console.process_figures import ProcessFigures
from penstock.cli.console.screen import Screen
from penstock.cli.console.top_app_tables import ShortTable, share
from penstock.cli.console.top_screen import TopScreen
from penstock.core.reports.events import Commanded
from penstock.dashboard import ChannelState
from penstock.dashboard.feed.feed_source import Rows
from penstock.engine import HealthBoard
from penstock.errors import PenstockError, ServerError, StateError
from penstock.ops.run_socket import run_socket_of
from penstock.ops.runs import alive, registered
from penstock.testing import Bench

NOW = 1_700_000_000.0
APP = "app?run=box%3A7"
FRAMES = '  File "/srv/run.py", line 3, in call\n  File "/srv/shop.py", line 12, in ship\n'


def run(**changes: Any) -> dict[str, Any]:
    return {
        "id": "box:7", "pid": 7, "host": "box", "app": "shop", "engine": "local", "groups": ["g"],
        "since": round(NOW) - 65, "stopping": False, "here": True, "at": NOW, "is_known": True, **changes,
    }  # fmt: skip


def handler(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "group": "g", "name": name, "topics": ["orders"], "order": "key", "state": "running", "members": 2,
        "rate": 120.0, "rates": [[1.0, 100.0], [2.0, 120.0]], "in_flight": 1234, "max_in_flight": 10_000,
        "bytes": 5_138_022, "max_bytes": 67_108_864, "busy": 7, "concurrency": 8, "is_auto": False, "found": [],
        "lanes": 31, "waiting": 1200, "oldest": NOW - 75, "retrying": 1, "read": 4321, "dead_lettered": 2,
        "breaker": None, "control": {"paused": False, "paused_partitions": [], "rate": "100 per 1s"},
        "at_work": [
            {"topic": "orders", "partition": 3, "offset": 100 + at, "key": f"anna-{at}", "attempt": 1,
             "seconds": 90.0 - at}
            for at in range(8)
        ],
        "longest_lanes": [
            {"topic": "orders", "partition": 3, "name": "bert", "waiting": 900, "held": True},
            {"topic": "orders", "partition": 4, "name": "idle", "waiting": 0, "held": False},
        ],
        "retries": [
            {"topic": "orders", "partition": 1, "offset": 55, "key": None, "attempt": 3, "seconds": 12.5, "behind": 9}
        ],
        "errors": [
            {"reason": "ValueError: no price\nfor 7", "traceback": FRAMES, "count": 46, "last_at": NOW - 2,
             "last": ["orders", 1, 55]}
        ],
        **changes,
    }  # fmt: skip


def app_rows(*handlers: dict[str, Any], **changes: Any) -> Rows:
    return {"run": run(**changes), **{f"handler g {each['name']}": each for each in handlers}}


class Scene:
    """A screen whose app ``shop`` is open; ``rows`` is what the feed says of it, ``sent`` the commands."""

    def __init__(self, rows: Rows, *, trouble: PenstockError | None = None, reads: int = 1) -> None:
        self.rows, self.trouble, self.reads = rows, trouble, reads
        self.sent: list[HandlerCommand] = []
        self.answers = threading.Event()
        self.said: Callable[[], str] = lambda: "ship of shop is paused; it keeps 3 partitions"
        self.commands = CommandSender(lambda: None, carry_out=self.carry_out)
        self.screen = TopScreen(figures=ProcessFigures(), commands=self.commands, start="apps", clock=lambda: NOW)
        self.press("down", "enter")

    def carry_out(self, command: HandlerCommand) -> str:
        self.sent.append(command)
        assert self.answers.wait(60)
        return self.said()

    def states(self, topic: str) -> ChannelState:
        found: dict[str, Rows] = {APP: self.rows, "apps": {"box:7": run()}}
        return ChannelState(found.get(topic, {}), self.trouble if topic == APP else None, self.reads)

    def lines(self, *, width: int = 120, height: int = 30) -> list[str]:
        return self.screen.frame(self.states, width=width, height=height, brokers="k:9092").plain.split("\n")

    def text(self, *, width: int = 120, height: int = 30) -> str:
        return "\n".join(self.lines(width=width, height=height))

    def press(self, *keys: str) -> None:
        for key in keys:
            self.screen.press(key, self.states)
            self.lines()

    def answered(self) -> list[str]:
        self.answers.set()
        wait_for(lambda: not self.commands.waits, "the answer")
        return self.lines()


def test_enter_opens_an_app_and_escape_returns() -> None:
    scene = Scene(app_rows(handler("ship")))
    assert scene.screen.topics == [APP]
    assert scene.screen.visible == []
    shown = scene.text()
    for each in (
        "shop (7) · up 1m 05s", "ship · running · group g · orders · order key · 2 members", "120/s ▇█",
        "1,234 of 10,000", "4.9 of 64 MiB", "7 of 8 busy", "1m 15s", "not open", "100 per 1s",
        "orders-3@100", "anna-0", "1m 30s", "bert", "900", "orders-1@55", "12s", "ValueError: no price ", "46",
        "shop.py:12 ship",
    ):  # fmt: skip
        assert each in shown
    assert "idle" not in shown
    assert "auto " not in shown
    scene.press("escape")
    assert scene.screen.topics[0] == "apps"


@pytest.mark.parametrize("width", [20, 30, 40, 60, 80, 120, 300])
@pytest.mark.parametrize("height", [1, 2, 3, 5, 8, 12, 24, 60])
def test_the_picture_fits_the_terminal(width: int, height: int) -> None:
    scene = Scene(app_rows(handler("ship", breaker=HOSTILE * 9), handler("bill")))
    for keys in ((), ("x",), ("y",)):
        scene.press(*keys)
        shown = scene.lines(width=width, height=height)
        assert len(shown) == height
        assert max(map(len, shown)) <= width
    scene.answered()
    assert len(scene.lines(width=width, height=height)) == height


def test_in_a_narrow_terminal_the_figures_the_longest_and_the_errors_are_left() -> None:
    shown = Scene(app_rows(handler("ship"))).text(width=60, height=24)
    for each in ("1,234 of 10,000", "4.9 of 64 MiB", "orders-3@100", "1m 30s", "bert", "12s", "ValueError", "x pause"):
        assert each in shown


def test_each_table_has_a_row_before_one_has_more() -> None:
    rows: list[dict[str, Any]] = [{}] * 5
    tables = [ShortTable((), rows), ShortTable((), rows[:1]), ShortTable((), rows)]

    def shown(height: int) -> list[int]:
        return [each.shown for each in share(tables, height)]

    assert shown(2) == []
    assert shown(3) == [1]
    assert shown(9) == [1, 1, 1]
    assert shown(12) == [3, 1, 2]
    assert shown(90) == [5, 1, 5]


def test_keys_choose_the_handler() -> None:
    scene = Scene(app_rows(handler("ship"), handler("bill"), handler("mail")))
    shown = []
    for key in ("tab", "right", "tab", "left"):
        scene.press(key)
        shown.append(scene.lines()[1].partition(" · ")[0])
    assert shown == ["bill (2 of 3)", "mail (3 of 3)", "ship (1 of 3)", "mail (3 of 3)"]
    assert "next handler" in scene.lines()[-1]
    del scene.rows["handler g mail"]
    assert scene.lines()[1].startswith("ship (1 of 2)")


def test_x_asks_and_only_y_pauses() -> None:
    scene = Scene(app_rows(handler("ship"), handler("bill")))
    for key in ("n", "escape", "q", "x", "p", "down"):
        scene.press("x")
        assert scene.lines()[-1] == "Pause ship of shop? y/n"
        scene.press(key)
        assert "x pause" in scene.lines()[-1]
    assert not scene.sent
    assert not scene.screen.ended
    scene.press("x")
    assert scene.lines(width=20)[-1] == "Pause ship of …? y/n", "the keys stay in a narrow terminal"
    scene.press("n", "tab", "x", "y")
    assert "Pausing bill of shop …" in scene.lines()
    scene.press("x", "y")
    assert "keeps 3 partitions" in scene.answered()[-2]
    assert scene.sent == [HandlerCommand("pause", "shop", 7, round(NOW) - 65, "bill")]
    scene.press("down")
    assert "keeps 3 partitions" not in scene.text()


def test_a_paused_handler_is_resumed_also_if_the_picture_is_frozen() -> None:
    scene = Scene(app_rows(handler("ship")))
    scene.press("p")
    assert "FROZEN" in scene.lines()[0]
    control = {"paused": True, "paused_partitions": [], "rate": None}
    scene.rows = app_rows(handler("ship", control=control, lanes=99))
    shown = scene.text()
    assert "99" not in shown
    assert "x resume" in shown
    assert "p unfreeze" in shown
    scene.press("x", "y")
    scene.answered()
    assert [each.action for each in scene.sent] == ["resume"]
    scene.press("p")
    assert "paused     yes" in scene.text()


@pytest.mark.parametrize("error", [StateError("shop has ended.", hint="Start it."), KeyError("paused")])
def test_what_fails_is_said_on_one_line(error: Exception) -> None:
    scene = Scene(app_rows(handler("ship")))

    def fail() -> str:
        raise error

    scene.said = fail
    scene.press("x", "y")
    said = "shop has ended. Start it." if isinstance(error, StateError) else "cannot be read: KeyError"
    assert said in scene.answered()[-2]


@pytest.mark.parametrize(
    ("scene", "said"),
    [
        (Scene(app_rows(handler("ship"), here=False)), "shop runs on box. Pause it there, with `penstock pause`."),
        (Scene(app_rows(handler("ship")), trouble=StateError("The run box:7 has ended.")), "The run box:7 has ended."),
        (Scene(app_rows(is_known=False, engine="spark")), "No handler is shown."),
        (Scene({}), "No handler is shown."),
    ],
)
def test_an_app_that_cannot_be_paused_from_here_is_refused(scene: Scene, said: str) -> None:
    scene.press("x")
    assert said in scene.lines()[-2]
    assert "y/n" not in scene.text()


NO_MEMBERS = {key: value for key, value in handler("ship", members=0).items() if key not in {
    "in_flight", "max_in_flight", "bytes", "max_bytes", "busy", "concurrency", "lanes", "waiting", "oldest", "retrying",
    "at_work", "longest_lanes", "retries",
}}  # fmt: skip


@pytest.mark.parametrize(
    ("scene", "said"),
    [
        (Scene({}), "Reading what the app does"),
        (Scene({}, trouble=ServerError("No Kafka.")), "No Kafka."),
        (Scene(app_rows(is_known=False)), "Waiting for the app"),
        (Scene(app_rows(is_known=False), reads=9), "The app does not say what it does."),
        (Scene(app_rows(is_known=False, engine="spark")), "on Spark"),
        (Scene(app_rows()), "joining its group"),
        (Scene(app_rows(NO_MEMBERS)), "none of its members has answered"),
        (Scene(app_rows(handler("ship", control=None), here=False)), "Only box knows whether it is paused"),
        (Scene(app_rows(handler("ship", control=None))), "takes no commands now"),
        (Scene(app_rows(handler("ship"), at=NOW - 3600)), "nothing since"),
        (Scene(app_rows(handler("ship")), trouble=StateError("It has ended.")), "It has ended."),
        (Scene(app_rows({"name": "ship"})), "another version of Penstock"),
        (Scene(app_rows(handler("ship", at_work=[7]))), "another version of Penstock"),
    ],
)
def test_what_is_missing_is_said_in_a_sentence(scene: Scene, said: str) -> None:
    for width in (60, 120):
        assert said in " ".join(scene.text(width=width).split())


def test_a_handler_without_work_says_so_and_auto_says_what_it_found() -> None:
    empty = {"at_work": [], "longest_lanes": [], "retries": [], "errors": [], "rate": 0.0, "oldest": None}
    auto = {"is_auto": True, "concurrency": 40, "found": [[NOW - 200, 32], [NOW - 100, 40]]}
    shown = Scene(app_rows(handler("ship", **empty, **auto))).text()
    assert "No record is at work, waits or has failed." in shown
    assert "found 40, 1m ago" in shown
    assert "40, as at first" in Scene(app_rows(handler("ship", **auto | {"found": []}))).text()


def test_a_breaker_and_single_paused_partitions_are_named() -> None:
    control = {"paused": False, "paused_partitions": ["orders[3]"], "rate": None}
    shown = Scene(app_rows(handler("ship", breaker="ConnectionError: bank\nis down", control=control))).text()
    assert "The breaker is open: ConnectionError: bank\n" in shown
    assert "Paused: orders[3]" in shown
    assert "paused     1 partition" in shown


def test_foreign_text_is_escaped() -> None:
    where = {"topic": HOSTILE, "partition": 0, "offset": 1, "key": HOSTILE, "attempt": 1, "seconds": 1.0}
    error = {"reason": HOSTILE, "traceback": f'  File "{HOSTILE}", line 1, in {HOSTILE}', "count": 1, "last_at": NOW}
    one = handler(
        HOSTILE, group=HOSTILE, topics=[HOSTILE], order=HOSTILE, state=HOSTILE, breaker=HOSTILE, at_work=[where],
        longest_lanes=[{**where, "name": HOSTILE, "waiting": 2}], retries=[{**where, "behind": 1}],
        errors=[{**error, "last": [HOSTILE, 1, 2]}],
        control={"paused": False, "paused_partitions": [HOSTILE], "rate": HOSTILE},
    )  # fmt: skip
    scene = Scene(app_rows(one, app=HOSTILE, host=HOSTILE))
    scene.said = lambda: HOSTILE
    terminal = Terminal()

    def show() -> None:
        frame = scene.screen.frame(scene.states, width=400, height=50, brokers=HOSTILE)
        assert len(frame.plain.split("\n")) == 50
        Screen(file=terminal, width=400).print(frame)

    scene.press("x")
    show()
    scene.press("y")
    show()
    scene.answered()
    show()
    scene.rows["run"]["here"] = False
    scene.press("x")
    show()
    assert terminal.getvalue().count(SHOWN) > 40
    assert_harmless(terminal.getvalue())


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    folder = tempfile.mkdtemp(prefix="p")  # the path of a socket must be short
    monkeypatch.setenv("PENSTOCK_HOME", folder)
    app = App("shop")

    @app.consume("orders")
    def ship(order: int) -> None: ...

    @app.consume("orders", group="other")
    def bill(order: int) -> None: ...

    bench = Bench(app, partitions=2)
    bench.run_until_idle()
    yield bench
    shutil.rmtree(folder)


def test_a_command_reaches_the_process_that_is_shown_and_no_other_one(bench: Bench) -> None:
    with (
        run_socket_of(bench._users_app, HealthBoard().member_metrics, warn=pytest.fail) as path,
        registered("shop", engine="local", groups=["g"], warn=pytest.fail, socket=path),
    ):
        (found,) = alive()
        command = HandlerCommand("pause", "shop", found.pid, round(found.born), "ship")
        assert carry_out(command) == "ship of shop is paused; it keeps 2 partitions"
        (event,) = bench.events_of(Commanded)
        assert (event.handler, event.action, event.via) == ("ship", "pause", "penstock top")
        # The system has given the id to another process since.
        with pytest.raises(StateError, match="has ended"):
            carry_out(HandlerCommand("pause", "shop", found.pid, round(found.born) - 9, "ship"))
