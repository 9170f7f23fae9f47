"""The pytest plugin of a worker: it takes files from the shared queue and records the result of each test."""

import gc
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import psutil
import pytest

from suite.processor_time import ProcessorTime
from suite.shared_queue import Queue

# Clients of pipelines live on for some time. Py4J waits with select(), which fails if a process has more than 1,024
# open files; a JVM would then never get the answer to a callback. So such a worker ends, and a new one takes the rest.
_MOST_FILES = 600


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("suite")
    group.addoption("--suite-folder", help="where the queue and the notes of all workers are")
    group.addoption("--suite-worker", help="the name of this worker")
    group.addoption("--suite-prefer", default="", help="which files come first: long, spark or light")


def pytest_configure(config: pytest.Config) -> None:
    if folder := config.getoption("--suite-folder"):
        worker, prefer = config.getoption("--suite-worker"), config.getoption("--suite-prefer")
        config.pluginmanager.register(_Worker(Path(folder), worker, prefer), "suite-worker")


class _Worker:
    def __init__(self, folder: Path, name: str, prefer: str) -> None:
        self._queue = Queue(folder)
        self._name = name
        self._order = _Order(prefer)
        self._notes = (folder / f"{name}.jsonl").open("a")
        self._phases: list[pytest.TestReport] = []
        self._processor = ProcessorTime()
        self._this = psutil.Process()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            note(self._notes, kind="broken", test=report.nodeid, text=report.longreprtext)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted("tests could not be collected")
        note(self._notes, kind="collected", tests=[item.nodeid for item in session.items])
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
        return True

    def _items(self, collected: list[pytest.Item]) -> Iterator[pytest.Item]:
        units: dict[str, list[pytest.Item]] = defaultdict(list)
        for item in collected:
            units[item.nodeid.partition("::")[0]].append(item)
        while units:
            if self._this.num_fds() > _MOST_FILES:
                note(self._notes, kind="crowded")
                return
            unit = self._order.choose(units)
            items = units.pop(unit)
            if self._queue.claim(unit, self._name):
                self._order.was_run(items)
                yield from (item for item in items if not self._queue.was_started(item.nodeid))

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
