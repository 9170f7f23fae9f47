"""Decides from the results of all tests whether the run passed."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

FLAKY_ALLOWED = 2


@dataclass(frozen=True)
class Result:
    """The result of one test; ``text`` is pytest's report of a failure, ``remarks`` is what the test recorded."""

    test: str
    outcome: str  # passed, skipped or failed
    worker: str
    seconds: float = 0.0
    text: str = ""
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """The whole run. ``problems`` are faults of the run itself, such as a worker that died between two tests."""

    results: tuple[Result, ...]
    flaky: tuple[Result, ...] = ()
    failed: tuple[Result, ...] = ()
    problems: tuple[str, ...] = ()
    seconds: float = 0.0
    workers: Mapping[str, float] = field(default_factory=dict)
    # Seconds of processor time by file, of the tests and of everything that they started.
    processor: Mapping[str, float] = field(default_factory=dict)

    @property
    def passed(self) -> int:
        return sum(result.outcome == "passed" for result in self.results) + len(self.flaky)

    @property
    def skipped(self) -> int:
        return sum(result.outcome == "skipped" for result in self.results)

    @property
    def green(self) -> bool:
        return bool(self.results) and not self.failed and not self.problems and len(self.flaky) <= FLAKY_ALLOWED


def judge(
    collected: Collection[str],
    first: Mapping[str, Result],
    again: Mapping[str, Result],
    *,
    problems: Collection[str] = (),
    seconds: float = 0.0,
    workers: Mapping[str, float] | None = None,
    processor: Mapping[str, float] | None = None,
) -> Verdict:
    """``first`` has the results of the parallel run, ``again`` those of the tests that ran again, alone."""
    lost = [Result(test, "failed", "", text="This test did not run.") for test in collected if test not in first]
    failures = [result for result in (*first.values(), *lost) if result.outcome == "failed"]
    flaky = [each for each in failures if (second := again.get(each.test)) and second.outcome == "passed"]
    return Verdict(
        results=tuple(first.values()),
        flaky=tuple(flaky),
        failed=tuple(each for each in failures if each not in flaky),
        problems=tuple(problems),
        seconds=seconds,
        workers=workers or {},
        processor=processor or {},
    )
