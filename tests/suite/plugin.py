"""The pytest plugin of the fork server and of its workers.

A worker takes files from the shared queue and records the result of each test.
"""

import faulthandler
import gc
import json
import os
import select
import signal
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import psutil
import pytest

from suite.fork_server import NAME as FORK_SERVER
from suite.processor_time import ProcessorTime
from suite.shared_queue import Queue
from suite.worker import TOKEN, scratch_of

# Tests may leave Kafka clients open. Py4J waits with select(), which fails if a process has more than 1,024
# open files; a JVM would then never get the answer to a callback. So such a worker ends, and a new one takes the rest.
_MOST_FILES = 600
# How often the fork server looks for workers that have ended.
_LOOK_SECONDS = 0.1


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("suite")
    group.addoption("--suite-folder", help="where the queue and the notes of all workers are")
    group.addoption("--suite-requests", type=int, help="the file descriptor from which it reads requests for workers")


def pytest_configure(config: pytest.Config) -> None:
    if folder := config.getoption("--suite-folder"):
        server = _ForkServer(Path(folder), config.getoption("--suite-requests"), config)
        config.pluginmanager.register(server, "suite-fork-server")


class _ForkServer:
    """Collects all tests once. Then it forks a worker for each request, until the runner closes the pipe."""

    def __init__(self, folder: Path, requests: int, config: pytest.Config) -> None:
        self._folder = folder
        self._requests = open(requests, "rb", buffering=0)  # noqa: SIM115 - it is open as long as this process runs
        self._config = config
        self._notes = (folder / f"{FORK_SERVER}.jsonl").open("a")
        self._workers: dict[int, str] = {}

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            note(self._notes, kind="broken", test=report.nodeid, text=report.longreprtext)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted("tests could not be collected")
        note(self._notes, kind="file", name="collection", processor=round(time.process_time(), 1))
        note(self._notes, kind="collected", tests=[item.nodeid for item in session.items])
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the runner interrupts only the collection, and each worker
        gc.collect()
        gc.freeze()  # so that workers share this memory, and do not look for garbage in it
        while (request := self._next_request()) is not None:
            sys.stdout.flush()
            with warnings.catch_warnings():
                # PyArrow's allocator has a thread of its own, which survives a fork.
                warnings.simplefilter("ignore", DeprecationWarning)
                process = os.fork()
            if process == 0:
                return self._become_worker(session, **request)
            self._workers[process] = request["name"]
        return True

    def _next_request(self) -> dict[str, str] | None:
        while True:
            self._note_ended()
            if select.select([self._requests], [], [], _LOOK_SECONDS)[0]:
                line = self._requests.readline()
                return json.loads(line) if line else None

    def _note_ended(self) -> None:
        while self._workers:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                return
            if name := self._workers.pop(process, None):
                note(self._notes, kind="exited", name=name, code=os.waitstatus_to_exitcode(status))

    def _become_worker(self, session: pytest.Session, name: str, prefer: str) -> bool:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.setsid()
        # From now on it can be interrupted.
        note(self._notes, kind="forked", name=name, process=os.getpid())
        self._requests.close()
        self._notes.close()
        self._config.pluginmanager.unregister(self)
        self._redirect(self._folder / f"{name}.log")
        scratch = scratch_of(self._folder, name)
        os.environ[TOKEN] = str(scratch)
        # pytest has no other way to choose the folder after its start.
        self._config._tmp_path_factory._given_basetemp = scratch  # type: ignore[attr-defined]
        worker = _Worker(self._folder, name, prefer)
        self._config.pluginmanager.register(worker, "suite-worker")
        worker.run(session)
        return True

    def _redirect(self, log: Path) -> None:
        """Write to a log of its own. pytest keeps copies of the old output, also for reports of crashes."""
        capture = self._config.pluginmanager.getplugin("capturemanager")
        capture.stop_global_capturing()
        with log.open("wb") as output:
            for descriptor in (1, 2):
                os.dup2(output.fileno(), descriptor)
        capture.start_global_capturing()
        capture.suspend_global_capture()
        faulthandler.enable(file=os.dup(2))


class _Worker:
    def __init__(self, folder: Path, name: str, prefer: str) -> None:
        self._queue = Queue(folder)
        self._name = name
        self._order = _Order(prefer)
        self._notes = (folder / f"{name}.jsonl").open("a")
        self._phases: list[pytest.TestReport] = []
        self._processor = ProcessorTime()
        self._this = psutil.Process()

    def run(self, session: pytest.Session) -> None:
        items = self._items(session.items)
        item = next(items, None)
        while item is not None:
            # pytest keeps the fixtures that the next test needs, so it has to know which one that is.
            following = next(items, None)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if following is None or following.path != item.path:
                gc.collect()  # Kafka clients in cycles keep their connections until then
                file = item.nodeid.partition("::")[0]
                note(self._notes, kind="file", name=file, processor=round(self._processor.lap(), 1))
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
            item = following

    def _items(self, collected: list[pytest.Item]) -> Iterator[pytest.Item]:
        units: dict[str, list[pytest.Item]] = defaultdict(list)
        for item in collected:
            units[_unit(item)].append(item)
        while units:
            if self._is_crowded():
                note(self._notes, kind="crowded")
                return
            unit = self._order.choose(units)
            items = units.pop(unit)
            if self._queue.claim(unit, self._name):
                self._order.was_run(items)
                yield from (item for item in items if not self._queue.was_started(item.nodeid))

    def _is_crowded(self) -> bool:
        if self._this.num_fds() > _MOST_FILES:
            gc.collect()  # the tests of this file may have left clients in cycles
        return self._this.num_fds() > _MOST_FILES

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._phases = []
        self._queue.mark_started(nodeid)
        note(self._notes, kind="started", test=nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._phases.append(report)
        if report.when == "teardown":
            note(
                self._notes,
                kind="ended",
                test=report.nodeid,
                outcome=_outcome(self._phases),
                seconds=sum(phase.duration for phase in self._phases),
                text="\n".join(_text(phase) for phase in self._phases if phase.failed),
                remarks=[str(value) for _, value in report.user_properties],
            )

    def pytest_sessionfinish(self) -> None:
        note(self._notes, kind="finished")
        self._notes.close()


def note(file: TextIO, **fields: Any) -> None:
    file.write(json.dumps(fields) + "\n")
    file.flush()


def _outcome(phases: list[pytest.TestReport]) -> str:
    for outcome in ("failed", "skipped"):
        if any(phase.outcome == outcome for phase in phases):
            return outcome
    return "passed"


def _text(phase: pytest.TestReport) -> str:
    parts = [f"in its {phase.when}:"] if phase.when != "call" else []
    sections = (f"----- {title} -----\n{content.rstrip()}" for title, content in phase.sections)
    return "\n".join([*parts, phase.longreprtext, *sections])


class _Order:
    """Chooses the next unit: the one for which this process has to start the fewest servers.

    Units of the preferred kind come first. Tests of Spark and chaos compute, most others wait. With workers for each
    kind, the processor is always busy, and no long file is left for the end, when the other workers are idle.
    """

    def __init__(self, prefer: str) -> None:
        self._prefer = prefer
        self._ready: set[str] = set()

    def choose(self, units: dict[str, list[pytest.Item]]) -> str:
        def cost(unit: str) -> tuple[bool, int, int]:
            needed = _session_fixtures(units[unit])
            return _kind(units[unit], needed) != self._prefer, len(needed - self._ready), -len(needed & self._ready)

        return min(units, key=cost)

    def was_run(self, items: list[pytest.Item]) -> None:
        self._ready |= _session_fixtures(items)


def _unit(item: pytest.Item) -> str:
    together = item.get_closest_marker("together")
    return str(together.args[0]) if together else item.nodeid.partition("::")[0]


def _kind(items: list[pytest.Item], fixtures: set[str]) -> str:
    if any(item.get_closest_marker("long") for item in items):
        return "long"
    return "spark" if "spark" in fixtures else "light"


def _session_fixtures(items: list[pytest.Item]) -> set[str]:
    return {
        name
        for item in items
        if isinstance(item, pytest.Function)
        for name, definitions in item._fixtureinfo.name2fixturedefs.items()
        if definitions[-1].scope == "session"
    }
