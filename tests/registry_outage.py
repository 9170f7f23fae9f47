"""A real schema registry that a test stops and starts while apps run."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

import psutil

from kafka_helpers import wait_for
from penstock.devkit import Embedded, UpOptions

# The least duration of an outage; `make outage` sets it.
_SECONDS = float(os.environ.get("PENSTOCK_TEST_OUTAGE", "0"))


@contextmanager
def killed(kafka: Embedded) -> Iterator[None]:
    """The registry is stopped inside the block, and runs again after it."""
    began, pid = monotonic(), _pid(kafka)
    os.kill(pid, signal.SIGKILL)
    try:
        wait_for(lambda: not psutil.pid_exists(pid), "the registry's end")
        yield
        _last(began)
    finally:
        kafka.up(UpOptions(registry=True))


@contextmanager
def frozen(kafka: Embedded) -> Iterator[None]:
    """Inside the block the registry accepts connections and does not answer."""
    began, pid = monotonic(), _pid(kafka)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
        _last(began)
    finally:
        os.kill(pid, signal.SIGCONT)


def _pid(kafka: Embedded) -> int:
    status = kafka.status().registry
    assert status is not None
    assert status.pid is not None
    return status.pid


def _last(began: float) -> None:
    wait_for(lambda: monotonic() - began >= _SECONDS, "the end of the outage", seconds=_SECONDS + 1)
