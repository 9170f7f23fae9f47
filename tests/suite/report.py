"""Prints the run: a line per file, the failures, a table, and a last line for machines."""

import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

from suite.verdict import FLAKY_ALLOWED, Result, Verdict

_SLOWEST = 8
_HUNGRIEST = 25


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Progress:
    """Prints a line when the last test of a file has ended, and at once when a test fails."""

    def __init__(self) -> None:
        self._left: Counter[str] = Counter()
        self._files: dict[str, list[Result]] = defaultdict(list)
        self._done = 0

    def saw(self, result: Result, collected: Collection[str]) -> None:
        if not self._left:
            self._left = Counter(map(_file, collected))
            say(f"{_count(len(collected), 'test')} in {_count(len(self._left), 'file')}")
        file = _file(result.test)
        self._done += 1
        self._files[file].append(result)
        if result.outcome == "failed":
            say(f"FAILED {result.test}")
        if len(self._files[file]) == self._left[file]:
            seconds = sum(each.seconds for each in self._files[file])
            remarks = dict.fromkeys(remark for each in self._files[file] for remark in each.remarks)
            facts = [_count(self._left[file], "test"), f"{seconds:.0f} s", *remarks]
            say(f"{self._done:>5}/{len(collected)} {file}: {', '.join(facts)}")


def show_stage(path: str, verdict: Verdict) -> None:
    """The report of one stage."""
    for result in verdict.failed:
        say(f"\n======== FAILED {result.test}\n{result.text}")
    for result in verdict.flaky:
        say(f"\n======== FLAKY {result.test}\nIt passed alone. Its first failure:\n{result.text}")
    for problem in verdict.problems:
        say(f"\n======== PROBLEM {problem}")
    say("\n" + "\n".join([*_table(verdict), *_slowest(verdict.results), *_hungriest(verdict.processor)]))
    for kind, results in (("FAILED", verdict.failed), ("FLAKY", verdict.flaky)):
        for result in results:
            say(f"{kind} {result.test}: {_headline(result.text)}")
    if len(verdict.flaky) > FLAKY_ALLOWED:
        say(f"{len(verdict.flaky)} tests are flaky, and {FLAKY_ALLOWED} are allowed.")
    say(f"{path}: {_summary(verdict)}")


def closing_line(verdicts: Sequence[Verdict]) -> str:
    """The line for CI: only the counts."""
    counts = {
        "passed": sum(verdict.passed for verdict in verdicts),
        "failed": sum(len(verdict.failed) + len(verdict.problems) for verdict in verdicts),
        "skipped": sum(verdict.skipped for verdict in verdicts),
    }
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count or name != "skipped")


def _summary(verdict: Verdict) -> str:
    flaky = f"{len(verdict.flaky)} of them flaky, " if verdict.flaky else ""
    return f"{closing_line([verdict])}, {flaky}in {verdict.seconds:.0f} s"


def _table(verdict: Verdict) -> list[str]:
    flaky = {result.test for result in verdict.flaky}
    lines = [f"{'worker':<8}{'tests':>7}{'seconds':>9}{'failed':>8}{'flaky':>7}"]
    for worker, seconds in sorted(verdict.workers.items()):
        own = [result for result in verdict.results if result.worker == worker]
        soft = sum(result.test in flaky for result in own)
        hard = sum(result.outcome == "failed" for result in own) - soft
        lines.append(f"{worker:<8}{len(own):>7}{seconds:>9.0f}{hard:>8}{soft:>7}")
    return lines


def _slowest(results: Sequence[Result]) -> list[str]:
    slowest = sorted(results, key=lambda result: -result.seconds)[:_SLOWEST]
    return ["The slowest tests:", *(f"{result.seconds:>7.1f} s {result.test}" for result in slowest)]


def _hungriest(processor: Mapping[str, float]) -> list[str]:
    files = sorted(processor.items(), key=lambda item: -item[1])[:_HUNGRIEST]
    total = f"Processor time: {sum(processor.values()):.0f} s. The files that use most:"
    return [total, *(f"{seconds:>7.1f} s {file}" for file, seconds in files)] if files else []


def _headline(text: str) -> str:
    """The line in which pytest says what went wrong."""
    lines = text.splitlines()
    return next((line[1:].strip() for line in lines if line.startswith("E ")), lines[0] if lines else "")


def _file(test: str) -> str:
    return test.partition("::")[0]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
