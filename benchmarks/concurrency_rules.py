"""Rules that look for the best number of calls at once, against simulated dependencies: no Kafka, and no real waiting.

The dependency answers in 10 ms up to 64 at once. After 12 s its capacity halves, or all calls take twice as long.
Run it with: PYTHONPATH=tests python benchmarks/concurrency_rules.py
"""

from collections.abc import Callable

from concurrency_simulation import (
    Aimd,
    Dependency,
    Fixed,
    LongTermGradient,
    Rule,
    halves,
    p99,
    simulate,
    slows,
    throughput,
)
from penstock.core.scheduling.auto_concurrency import AutoConcurrency


def show() -> None:
    rules: dict[str, Callable[[], Rule]] = {
        "auto": lambda: AutoConcurrency(256),
        "long-term gradient": LongTermGradient,
        "AIMD, slow = 12 ms": lambda: Aimd(0.012),
        "fixed 64": lambda: Fixed(64),
    }
    for name, make in rules.items():
        for change in (halves, slows):
            for spread in (0.0, 0.5, 1.0):
                ended = simulate(make(), Dependency(spread=spread), seconds=24, changes={12.0: change})
                print(f"{name:20} {change.__name__:7} spread {spread}:", end=" ")
                for start, end in ((0, 2), (6, 12), (12, 18), (18, 24)):
                    limits = [each.limit for each in ended if start <= each.at < end]
                    print(
                        f"{start:2}-{end}: {throughput(ended, start, end):5.0f}/s "
                        f"p99 {p99(ended, start, end) * 1000:5.1f} ms limit {min(limits)}-{max(limits)} |",
                        end=" ",
                    )
                print()


if __name__ == "__main__":
    show()
