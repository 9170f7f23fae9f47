"""Chromium, driven by Playwright, for the tests of the dashboard and its screenshots."""

import os
import shutil
from asyncio import AbstractEventLoop, events
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, expect, sync_playwright

from kafka_helpers import WAIT_SECONDS

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_MISSING = (
    "Chromium was not found, and the tests of the dashboard need it. Install it (Debian: apt-get install chromium), "
    "or name its program: CHROMIUM=/path/to/chromium."
)
_FLAGS = (
    "--no-sandbox",  # containers run tests as root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--font-render-hinting=none",
)


def chromium_path() -> str:
    """Return the browser's program. Raise an error of one line if there is none: these tests are never skipped."""
    named = os.environ.get("CHROMIUM")
    found = shutil.which(named) if named else next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        raise RuntimeError(_MISSING)
    return found


class Chromium:
    """A running browser. Use it inside of ``in_use``.

    Playwright's blocking API leaves its event loop marked as running on this thread, and other tests of the same
    process could then start no loop of their own.
    """

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self._loop = events._get_running_loop()

    @contextmanager
    def in_use(self) -> Iterator[Browser]:
        with _running(self._loop):
            yield self.browser


@contextmanager
def open_chromium() -> Iterator[Chromium]:
    program = chromium_path()
    expect.set_options(timeout=WAIT_SECONDS * 1000)
    playwright = sync_playwright().start()
    chromium = None
    try:
        chromium = Chromium(playwright.chromium.launch(executable_path=program, args=_FLAGS))
        with _running(None):
            yield chromium
    finally:
        if chromium is not None:
            chromium.browser.close()
        playwright.stop()


@contextmanager
def _running(loop: AbstractEventLoop | None) -> Iterator[None]:
    before = events._get_running_loop()
    events._set_running_loop(loop)
    try:
        yield
    finally:
        events._set_running_loop(before)
