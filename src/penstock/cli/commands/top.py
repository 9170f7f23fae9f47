"""``penstock top``."""

import threading
import time
from collections import deque
from functools import partial
from typing import Annotated

import typer
from rich.live import Live

from penstock.cli.commands.lag import PANEL
from penstock.cli.console.connect import ClientSettings, ConfigFile, connect
from penstock.cli.console.handler_commands import CommandSender
from penstock.cli.console.keyboard import pressed_keys
from penstock.cli.console.process_figures import ProcessFigures
from penstock.cli.console.screen import out, print_json
from penstock.cli.console.shared_options import Brokers, Json
from penstock.cli.console.tables import screen_width
from penstock.cli.console.top_screen import TopScreen
from penstock.dashboard import DashboardChild, FeedFollower, follow_feed

_WITHOUT_TERMINAL = 120
# Figures such as the time since a start change although no row does.
_REDRAW_SECONDS = 1.0
# At most so many frames: a burst of changes is one.
_PER_SECOND = 12
_POLL_SECONDS = 0.05
# CPU is measured between two looks.
_MEASURE_SECONDS = 0.25

_EXAMPLES = """
[bold]Examples[/]

  penstock top                         groups and apps, live; q quits
  penstock top --apps                  begin with the apps on this machine
  penstock top --once | head -20       one picture as text
  penstock top --json                  the same as data
"""


def register(app: typer.Typer) -> None:
    app.command("top", epilog=_EXAMPLES, rich_help_panel=PANEL)(top)


def top(
    *,
    apps: Annotated[bool, typer.Option("--apps", help="Begin with the apps that run on this machine.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Print one picture and exit, as without a terminal.")] = False,
    brokers: Brokers = None,
    config: ConfigFile = None,
    settings: ClientSettings = None,
    as_json: Json = False,
) -> None:
    """Show groups with their lag and rates, and the apps on this machine, live in the terminal.

    Keys: s and arrows sort, r reverses, / filters, p freezes the picture, Enter opens a group or an app, Escape goes
    back, 1 and 2 switch, q quits. In an app: Tab shows the next handler, x pauses or resumes it.
    It follows the same feed as `penstock ui`, and continues when a broker restarts.
    """
    changed = threading.Event()
    commands = CommandSender(changed.set)
    screen = TopScreen(figures=ProcessFigures(), commands=commands, start="apps" if apps else "groups")
    with follow_feed(partial(connect, brokers, config, settings), changed.set) as (feed, reader):
        if as_json or once or not out.is_terminal:
            _once(screen, feed, reader, as_json=as_json)
        else:
            _live(screen, feed, reader, changed)


def _once(screen: TopScreen, feed: FeedFollower, reader: DashboardChild, *, as_json: bool) -> None:
    """Print what the feed says after it has read everything once, and rates of what is shown."""
    height = out.height if out.is_terminal else None
    width = screen_width() or _WITHOUT_TERMINAL
    feed.follow(screen.topics)
    _wait_for_reads(screen, feed, 1)
    screen.rows(feed.state)
    time.sleep(_MEASURE_SECONDS)
    screen.frame(feed.state, width=width, height=height, brokers=None)
    if feed.state("groups").rows:
        feed.look("groups", screen.visible)
        _wait_for_reads(screen, feed, 2)
    if as_json:
        print_json({"brokers": reader.brokers, "rows": screen.rows(feed.state)})
    else:
        out.print(screen.frame(feed.state, width=width, height=height, brokers=reader.brokers), soft_wrap=True)


def _wait_for_reads(screen: TopScreen, feed: FeedFollower, count: int) -> None:
    """Wait until each topic was read so often. Raise what made the first of them fail."""
    for topic in screen.topics:
        while (state := feed.state(topic)).reads < count:
            time.sleep(_POLL_SECONDS)
        if state.trouble is not None and topic == screen.topics[0]:
            raise state.trouble


def _live(screen: TopScreen, feed: FeedFollower, reader: DashboardChild, changed: threading.Event) -> None:
    pressed: deque[str] = deque()

    def take(key: str) -> None:
        pressed.append(key)
        changed.set()

    try:
        with Live(console=out, screen=True, auto_refresh=False) as live, pressed_keys(take):
            while not screen.ended:
                changed.clear()
                while pressed:
                    screen.press(pressed.popleft(), feed.state)
                feed.follow(screen.topics)
                frame = screen.frame(feed.state, width=out.width, height=out.height, brokers=reader.brokers)
                live.update(frame, refresh=True)
                feed.look("groups", screen.visible)
                changed.wait(_REDRAW_SECONDS)
                if not pressed:
                    time.sleep(1 / _PER_SECOND)
    except KeyboardInterrupt:
        return
