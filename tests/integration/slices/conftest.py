"""The Spark engine on a real broker, with its slices on threads of this process: these tests need no Spark session."""

import threading
from typing import Any

import pytest

from kafka_helpers import CatchUp
from penstock import App
from penstock.core.reports.events import Event
from thread_jobs import run_on_threads


@pytest.fixture
def catch_up(brokers: str, monkeypatch: pytest.MonkeyPatch) -> CatchUp:
    def run(app: App, **options: Any) -> list[Event]:
        return run_on_threads(app, brokers, threading.Event(), patch=monkeypatch, until_caught_up=True, **options)

    return run
