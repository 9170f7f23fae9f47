"""The Spark engine on a real broker, with its slices on threads of this process: these tests need no Spark session."""

import threading
from functools import partial
from typing import Any

import pytest

from kafka_helpers import CatchUp
from penstock import App
from penstock.core.reports.events import Event
from thread_jobs import Start, run_on_threads, started


@pytest.fixture
def catch_up(brokers: str, monkeypatch: pytest.MonkeyPatch) -> CatchUp:
    def run(app: App, **options: Any) -> list[Event]:
        return run_on_threads(app, brokers, threading.Event(), patch=monkeypatch, until_caught_up=True, **options)

    return run


@pytest.fixture
def start(brokers: str, monkeypatch: pytest.MonkeyPatch) -> Start:
    """A function that runs an app in the background of a ``with`` block."""
    return partial(started, brokers=brokers, patch=monkeypatch)
