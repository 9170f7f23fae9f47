"""One stage of the run: workers share its files. Failed tests run again, one at a time, when all files are done."""

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from suite.fork_server import ForkServer
from suite.report import Progress, say
from suite.shared_queue import Queue
from suite.verdict import Result, Verdict, judge
from suite.worker import Worker

# What each worker begins with. One Spark session is enough for most of the run.
_PREFERENCES = ("long", "spark", "light", "long", "long", "light")
# If more tests than this fail, it runs none of them again.
_SECOND_CHANCES = 8
_LOOK_SECONDS = 0.2
# How long the processes of a worker may run after its regular end, on a very busy machine.
_GRACE_SECONDS = 120.0


@dataclass(frozen=True)
class Stage:
    path: str
    workers: int
    second_chance: bool
    # How often dead workers are replaced.
    replacements: int = 4


@dataclass
class _Notes:
    """The results that all workers have written."""

    collected: dict[str, None] = field(default_factory=dict)
    results: dict[str, Result] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    processor: Counter[str] = field(default_factory=Counter)
    # For each worker: the test that runs now, and whether the worker has ended regularly.
    running: dict[str, str] = field(default_factory=dict)
    finished: set[str] = field(default_factory=set)
    # Workers that have ended before the queue was empty, because they had too many open files.
    crowded: set[str] = field(default_factory=set)

    def take(self, worker: str, note: dict[str, Any]) -> Result | None:
        """Returns the result, if the note is one."""
        match note["kind"]:
            case "collected":
                self.collected |= dict.fromkeys(note["tests"])
            case "broken":
                self.broken[note["test"]] = note["text"]
            case "file":
                self.processor[note["name"]] += note["processor"]
            case "started":
                self.running[worker] = note["test"]
            case "finished":
                self.finished.add(worker)
            case "crowded":
                self.crowded.add(worker)
            case "ended":
                self.running.pop(worker, None)
                remarks = tuple(note["remarks"])
                result = Result(note["test"], note["outcome"], worker, note["seconds"], note["text"], remarks)
                self.results[result.test] = result
                return result
        return None


def run_stage(stage: Stage) -> Verdict:
    folder = Path(tempfile.mkdtemp(prefix="penstock-tests-"))
    began = time.monotonic()
    run = _Run(folder, stage)
    verdict = None
    try:
        run.together()
        again = run.alone() if stage.second_chance else {}
        verdict = judge(
            run.notes.collected,
            run.notes.results,
            again,
            problems=run.problems,
            seconds=time.monotonic() - began,
            workers={worker.name: worker.seconds for worker in run.ended},
            processor=run.notes.processor,
        )
    finally:
        if verdict is None or verdict.green:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            say(f"The logs of this run are in {folder}.")
    return verdict


class _Run:
    def __init__(self, folder: Path, stage: Stage) -> None:
        self._folder = folder
        self._stage = stage
        self._queue = Queue(folder)
        self._replacements = stage.replacements
        self.notes = _Notes()
        self.problems: list[str] = []
        self.ended: list[Worker] = []
        self._progress = Progress()
        self._server = ForkServer(folder, stage.path)

    def together(self) -> None:
        workers = [
            Worker(self._server, str(number + 1), prefer=_PREFERENCES[number % len(_PREFERENCES)])
            for number in range(self._stage.workers)
        ]
        self._attend(workers)
        self.problems += [f"{name} could not be collected:\n{text}" for name, text in self.notes.broken.items()]

    def alone(self) -> dict[str, Result]:
        """Run failed tests again, each alone in a new process; returns their results."""
        failed = [test for test in self.notes.collected if self._failed(test)]
        again: dict[str, Result] = {}
        for number, test in enumerate(failed[:_SECOND_CHANCES], start=1):
            say(f"once more, alone: {test}")
            # A separate stage, with a separate queue.
            single = _Run(self._folder / f"alone-{number}", Stage(test, 1, second_chance=False, replacements=0))
            single.together()
            again |= single.notes.results
            say(f"  {again[test].outcome if test in again else 'did not run'}")
        return again

    def _failed(self, test: str) -> bool:
        return test not in self.notes.results or self.notes.results[test].outcome == "failed"

    def _attend(self, workers: list[Worker]) -> None:
        """Wait until the last worker has ended."""
        try:
            while workers:
                time.sleep(_LOOK_SECONDS)
                for worker in tuple(workers):
                    # Check this before reading its results, so that the last ones are not missed.
                    code = worker.exit_code
                    self._read(worker)
                    if code is not None:
                        workers.remove(worker)
                        workers += self._after(worker, code)
        finally:
            if workers:
                self._server.fork_no_more()
            self._end(workers)
            self._server.close()

    def _read(self, worker: Worker) -> None:
        results = worker.new_notes()
        # Read this later: the list of tests was written before the first result.
        for note in self._server.new_notes():
            self.notes.take("", note)
        for note in results:
            if result := self.notes.take(worker.name, note):
                self._progress.saw(result, self.notes.collected)

    def _after(self, worker: Worker, code: int) -> list[Worker]:
        """End the servers of a worker that has ended. If it died, start another worker."""
        self._end([worker])
        if worker.name in self.notes.finished:
            failed = any(
                each.worker == worker.name and each.outcome == "failed" for each in self.notes.results.values()
            )
            if code and not failed and not self.notes.broken:
                self.problems.append(f"Worker {worker.name} ended with code {code}:\n{worker.tail()}")
            if worker.name not in self.notes.crowded:
                return []
            return [Worker(self._server, f"{worker.name}-next", prefer=worker.prefer)]
        if not self.notes.collected:
            if not self.notes.broken:
                self.problems = [f"pytest could not start:\n{self._server.tail()}"]
            return []
        reason = f"The process of this test ended with code {code}; a test that hangs is ended so.\n{worker.tail()}"
        test = self.notes.running.pop(worker.name, None)
        if test is None:
            self.problems.append(f"Worker {worker.name} died between two tests, with code {code}:\n{worker.tail()}")
        else:
            self.notes.results[test] = result = Result(test, "failed", worker.name, text=reason)
            self._progress.saw(result, self.notes.collected)
        self._queue.release(worker.name)
        if not self._replacements or self._server.has_ended:
            return []
        self._replacements -= 1
        return [Worker(self._server, f"{worker.name}-next")]

    def _end(self, workers: Sequence[Worker]) -> None:
        for worker in workers:
            worker.stop()
        for worker in workers:
            finished = worker.name in self.notes.finished
            left = worker.end(grace=_GRACE_SECONDS if finished else 0.0)
            self.ended.append(worker)
            if left and finished:
                self.problems.append(f"Worker {worker.name} left processes running: {', '.join(left)}.")
