"""``penstock top``: rows that keys sort, filter and open, at every width, and no foreign text raw."""

from typing import Any

import pytest

from hostile_text import HOSTILE, SHOWN, Terminal, assert_harmless
from penstock.cli.console.handler_commands import CommandSender
from penstock.cli.console.keyboard import keys_in
from penstock.cli.console.process_figures import ProcessFigures
from penstock.cli.console.screen import Screen
from penstock.cli.console.top_screen import TopScreen
from penstock.dashboard import ChannelState
from penstock.dashboard.feed.feed_source import Rows
from penstock.errors import ServerError

GROUPS: Rows = {
    "billing": {"name": "billing", "status": "STOP", "severity": 3, "lag": 900, "lag_seconds": 75.0, "rate_in": 10.0},
    "shipping": {"name": "shipping", "status": "OK", "severity": 0, "lag": 5, "trend": [None, 5], "state": "Stable"},
    "unread": {"name": "unread", "state": "Empty"},
}
GROUP: Rows = {
    "group": {"name": "billing"},
    "member m-1": {"id": "m-1", "label": "bill", "target": []},
    "partition orders/3": {"topic": "orders", "partition": 3, "lag": 7, "member": "m-1", "status": "OK"},
    "partition orders/10": {"topic": "orders", "partition": 10, "lag": 7, "member": None, "status": "OK"},
}


def states(topic: str) -> ChannelState:
    rows: dict[str, Any] = {"groups": GROUPS, "group?name=billing": GROUP}.get(topic, {})
    return ChannelState(rows, None, 1)


def new_screen() -> TopScreen:
    return TopScreen(
        figures=ProcessFigures(), commands=CommandSender(lambda: None, carry_out=lambda _: pytest.fail("a command"))
    )


@pytest.fixture
def screen() -> TopScreen:
    return new_screen()


def lines(screen: TopScreen, *, width: int = 80, height: int | None = 12) -> list[str]:
    return screen.frame(states, width=width, height=height, brokers="k:9092").plain.split("\n")


def names(screen: TopScreen) -> list[str]:
    return [str(row.get("name", row.get("partition"))) for row in screen.rows(states)]


def press(screen: TopScreen, *keys: str) -> None:
    for key in keys:
        screen.press(key, states)
        lines(screen)


@pytest.mark.parametrize("width", [20, 40, 60, 80, 132, 300])
def test_the_picture_fits_the_terminal_and_keeps_names_and_lag(screen: TopScreen, width: int) -> None:
    shown = lines(screen, width=width)
    assert len(shown) == 12
    assert max(map(len, shown)) <= width
    assert width < 60 or any("billing" in line and "900" in line and "STOP" in line for line in shown)
    assert ("TREND" in shown[1]) == (width >= 132)


def test_keys_sort_by_any_column_and_unknown_values_come_last(screen: TopScreen) -> None:
    assert names(screen) == ["billing", "shipping", "unread"], "by lag, the largest first"
    press(screen, "r")
    assert names(screen) == ["shipping", "billing", "unread"]
    press(screen, "left", "left")
    assert names(screen) == ["billing", "shipping", "unread"], "by name"
    press(screen, "r")
    assert names(screen) == ["unread", "shipping", "billing"]


def test_a_filter_is_typed_kept_and_cleared(screen: TopScreen) -> None:
    press(screen, "/", *"q ship", "backspace", "backspace")
    assert not screen.ended, "q is a letter while you type"
    press(screen, "enter")
    assert names(screen) == []
    assert "No row matches" in "\n".join(lines(screen))
    press(screen, "escape", "/", "s", "h", "enter")
    assert names(screen) == ["shipping"]


def test_enter_opens_the_chosen_group_and_escape_returns(screen: TopScreen) -> None:
    lines(screen)
    press(screen, "down", "enter")
    assert screen.topics == ["group?name=billing"]
    press(screen, "s", "s", "r", "r")
    owners = [row["owner"] for row in screen.rows(states)]
    assert sorted(map(str, owners)) == ["None", "bill"]
    press(screen, "escape")
    assert screen.topics == ["groups"]


def test_partitions_are_sorted_by_their_numbers(screen: TopScreen) -> None:
    lines(screen)
    press(screen, "down", "enter", "left", "left", "r", "r")
    assert names(screen) == ["3", "10"]


def test_a_frozen_picture_stays_and_says_so(screen: TopScreen) -> None:
    press(screen, "p")

    def later(_topic: str) -> ChannelState:
        return ChannelState({}, None, 2)

    shown = screen.frame(later, width=80, height=10, brokers=None).plain
    assert "FROZEN" in shown
    assert "billing" in shown
    press(screen, "p")
    assert "billing" not in screen.frame(later, width=80, height=10, brokers=None).plain


def test_many_rows_scroll_with_the_chosen_one() -> None:
    many: Rows = {f"g{number:04}": {"name": f"g{number:04}", "lag": number} for number in range(1000)}
    screen = new_screen()

    def of_many(_topic: str) -> ChannelState:
        return ChannelState(many, None, 1)

    def shown() -> str:
        return screen.frame(of_many, width=80, height=20, brokers=None).plain

    assert len(screen.visible) == 0
    shown()
    assert len(screen.visible) == 16
    for _ in range(40):
        screen.press("down", of_many)
        shown()
    assert "g0960" in shown()
    screen.press("end", of_many)
    assert "g0000" in shown()
    screen.press("home", of_many)
    assert "g0999" in shown()


def test_trouble_says_what_to_do_at_any_width(screen: TopScreen) -> None:
    error = ServerError("No broker answers at k:9092.", hint="Start one with `penstock up`.")
    text = screen.frame(lambda _: ChannelState({}, error, 1), width=30, height=20, brokers=None).plain
    assert "penstock up" in " ".join(text.split())
    rows = screen.frame(lambda _: ChannelState(GROUPS, error, 1), width=80, height=20, brokers=None).plain
    assert "billing" in rows
    assert "No broker answers" in rows


def test_foreign_names_are_escaped(screen: TopScreen) -> None:
    hostile: Rows = {HOSTILE: {"name": HOSTILE, "lag": 3, "state": HOSTILE, "error": HOSTILE}}
    terminal = Terminal()
    frame = screen.frame(lambda _: ChannelState(hostile, None, 1), width=300, height=9, brokers=HOSTILE)
    Screen(file=terminal, width=300).print(frame)
    assert SHOWN in terminal.getvalue()
    assert_harmless(terminal.getvalue())


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        ("q", ["q"]),
        ("\x1b[A\x1b[Bj", ["up", "down", "j"]),
        ("\x1b", ["escape"]),
        ("\x1b[1;5Cx", ["x"]),
        ("\x1b[", []),
        ("\r\x7f\t\x00é", ["enter", "backspace", "tab", "é"]),
    ],
)
def test_the_bytes_of_a_terminal_become_keys(sent: str, keys: list[str]) -> None:
    assert list(keys_in(sent)) == keys
